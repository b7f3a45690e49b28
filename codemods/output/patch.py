"""A plan as the bytes of a patch: a plain diff, mails for `git am`, or mails with DEP-3 fields.

Paths are POSIX, relative to the tree, sorted, and quoted as git quotes them. A plan that changes
nothing gives b"" in every form. Formats: POSIX `diff -u`; git's diff-format and format-patch
pages; https://dep-team.pages.debian.net/deps/dep3/.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codemods.engine.hunks import Hunk, hunks
from codemods.engine.plan import FileChange, Plan, RecipePlan, Status, Verdict
from codemods.output.applies import applies_exactly
from codemods.output.mail import Mail
from codemods.output.table import NAME, printable, version


class DoesNotApply(Exception):
    """A patch that, applied to the tree's files, would not give the bytes that apply writes."""


@dataclass(frozen=True)
class _Section:
    """One file's part of a patch."""

    change: FileChange
    hunks: tuple[Hunk, ...]

    @property
    def added(self) -> int:
        return sum(line.startswith(b"+") for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        return sum(line.startswith(b"-") for hunk in self.hunks for line in hunk.lines)

    @property
    def lines_changed(self) -> int:
        return self.added + self.removed

    def git_lines(self) -> Iterator[bytes]:
        """The section with git's own header, full blob ids in it so that `git am -3` works."""
        old, new = _quoted("a/" + self.change.path), _quoted("b/" + self.change.path)
        ids = f"{blob_id(self.change.before)}..{blob_id(self.change.after)}"
        yield f"diff --git {old} {new}\nindex {ids} {self.change.mode}\n".encode()
        yield from self.plain_lines()

    def plain_lines(self) -> Iterator[bytes]:
        # As git does: a tab ends a name that holds a space, or GNU patch would cut the name there.
        end = "\t\n" if " " in self.change.path else "\n"
        yield f"--- {_quoted('a/' + self.change.path)}{end}".encode()
        yield f"+++ {_quoted('b/' + self.change.path)}{end}".encode()
        for hunk in self.hunks:
            yield from hunk.rendered()


def unified(plan: Plan) -> bytes:
    """A plain unified diff of all recipes' changes that `git apply` and `patch -p1` take.

    Raises DoesNotApply.
    """
    sections = _sections(plan.changes)
    patch = b"".join(line for section in sections for line in section.plain_lines())
    return _checked(plan.changes, patch)


def mails(plan: Plan, mail: Mail, *, dep3: bool = False) -> tuple[tuple[str, bytes], ...]:
    """A mail for each recipe that changes something, with a file name for it.

    Each applies after the one before; `dep3` adds DEP-3 fields to the header, which `git am` passes
    over. Raises DoesNotApply.
    """
    recipes = () if plan.refusals else plan.recipes
    changing = [one for one in recipes if any(c.before != c.after for c in one.changes)]
    return tuple(
        (f"{number:04}-{one.recipe}.patch", _checked(one.changes, _mail(one, mail, dep3)))
        for number, one in enumerate(changing, start=1)
    )


def mailbox(series: Iterable[tuple[str, bytes]]) -> bytes:
    """The mails as one file; several are separated by the line that git puts above each."""
    found = [mail for _, mail in series]
    return found[0] if len(found) == 1 else b"".join(_FROM_LINE + mail for mail in found)


# git format-patch's own; the date marks the line as no mail program's.
_FROM_LINE = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n".encode()


def _checked(changes: tuple[FileChange, ...], patch: bytes) -> bytes:
    if not applies_exactly(changes, patch):
        raise DoesNotApply(
            "the patch does not give the bytes that apply writes; this is a fault of the tool, "
            "please report it"
        )
    return patch


def blob_id(data: bytes) -> str:
    """The name git gives to these bytes in a SHA-1 repository."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _sections(changes: Iterable[FileChange]) -> list[_Section]:
    return [
        _Section(each, hunks(each.before, each.after))
        for each in sorted(changes, key=lambda change: change.path)
        if each.before != each.after
    ]


def _mail(plan: RecipePlan, mail: Mail, dep3: bool) -> bytes:
    sections = _sections(plan.changes)
    # A path that is not UTF-8 is named in the body as Python writes it.
    body = _body(plan).encode("utf-8", "backslashreplace")
    subject = f'Revert "{plan.about.subject}"' if _takes_out(plan) else plan.about.subject
    header = mail.header(subject) + (_dep3_fields(plan, mail) if dep3 else b"")
    if not body.isascii():
        header += (
            b"MIME-Version: 1.0\n"
            b"Content-Type: text/plain; charset=UTF-8\n"
            b"Content-Transfer-Encoding: 8bit\n"
        )
    parts = [header, b"\n", body, b"---\n", _diffstat(sections).encode(), b"\n"]
    return b"".join(parts) + b"".join(line for each in sections for line in each.git_lines())


def _takes_out(plan: RecipePlan) -> bool:
    """Whether the patch takes the recipe's own text out of a tree that upstream has fixed."""
    return plan.verdict is Verdict.SUPERSEDED


def _dep3_fields(plan: RecipePlan, mail: Mail) -> bytes:
    """DEP-3's fields; the patch was not sent upstream, which has a fix of its own or closed one."""
    fields = ["Origin: vendor" if _takes_out(plan) else f"Origin: other, {NAME} {version()}"]
    if not _takes_out(plan):
        fields.append(f"Bug: {plan.about.origin}")
    fields += ["Forwarded: not-needed", f"Last-Update: {mail.date:%Y-%m-%d}"]
    return "".join(f"{field}\n" for field in fields).encode()


def _body(plan: RecipePlan) -> str:
    """What was changed and why; no line can be taken for the start of a diff or a header."""
    edits = [outcome for outcome in plan.outcomes if outcome.status is Status.EDIT]
    bullets = [
        _filled(printable(f"- {outcome.edit}, {outcome.file}: {outcome.detail}"), "  ")
        for outcome in edits
    ]
    what = "\n".join(["What changes:", "", *bullets, ""])
    idea = f"The idea is from {_short_name(plan.about.origin)}:\n{plan.about.origin}\n"
    credit = [] if _takes_out(plan) else [idea]
    command = printable(shlex.join(["apply", "--recipe", plan.recipe, *plan.options]))
    made = f"Generated-by: {NAME} {version()} ({command})\n"
    return "\n".join([_filled(printable(plan.why)) + "\n", what, *credit, made])


def _filled(text: str, indent: str = "") -> str:
    import textwrap

    return textwrap.fill(
        text,
        width=72,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _short_name(origin: str) -> str:
    """`OWNER/PROJECT #NUMBER` of an issue's or pull request's URL; other URLs as they are."""
    found = re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/(?:pull|issues)/(\d+)", origin)
    return f"{found[1]} #{found[2]}" if found else origin


def _diffstat(sections: list[_Section]) -> str:
    """The table `git diff --stat` prints, 72 columns wide."""
    names = [_quoted(section.change.path) for section in sections]
    most = max(section.lines_changed for section in sections)
    width, digits = max(map(len, names)), len(str(most))
    room = max(72 - 6 - width - digits, 10)
    rows = [
        f" {name:<{width}} | {section.lines_changed:>{digits}} {_graph(section, most, room)}\n"
        for name, section in zip(names, sections, strict=True)
    ]
    total = f" {_count(len(sections), 'file')} changed"
    if added := sum(section.added for section in sections):
        total += f", {_count(added, 'insertion')}(+)"
    if removed := sum(section.removed for section in sections):
        total += f", {_count(removed, 'deletion')}(-)"
    return "".join(rows) + total + "\n"


def _graph(section: _Section, most: int, room: int) -> str:
    added, removed = section.added, section.removed
    if most > room:
        # As git rounds: what is not nothing shows, and the larger side gets what is left.
        total = max(_scaled(added + removed, most, room), 2 if added and removed else 0)
        if added < removed:
            added = _scaled(added, most, room)
            removed = total - added
        else:
            removed = _scaled(removed, most, room)
            added = total - removed
    return "+" * added + "-" * removed


def _scaled(number: int, most: int, room: int) -> int:
    return 1 + number * (room - 1) // most if number else 0


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


_ESCAPES = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r"}
_ESCAPES |= {ord('"'): r"\"", ord("\\"): r"\\"}


def _quoted(path: str) -> str:
    """A path as git writes it: as it is, or in C quotes when a byte of it is odd."""
    data = path.encode("utf-8", "surrogateescape")
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in data):
        return path
    inner = "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in data
    )
    return f'"{inner}"'
