"""Plan -> bytes of a patch: a plain diff, a mailbox for `git am`, or a mailbox with DEP-3 fields.

Paths are POSIX, relative to the tree, sorted, and quoted as git quotes them. A plan that changes
nothing gives b"" in every form. Formats: POSIX `diff -u`; git's diff-format and format-patch
pages; https://dep-team.pages.debian.net/deps/dep3/.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codemods.hunks import Hunk, hunks
from codemods.mail import Mail
from codemods.outcome import EditName, FileChange, Plan, Status

ORIGIN = "https://github.com/vllm-project/vllm/pull/42165"

_WHY = """\
The V1 runner's dummy runs never call BlockTable.compute_slot_mapping, so
its Triton kernel is compiled while the first requests wait for it.
"""
_WHY_KERNEL = """\
Triton also compiles the kernel anew for each class of num_tokens: 1, a
multiple of 16, any other.
"""
_CREDIT = f"""\
The idea is from vllm-project/vllm #42165:
{ORIGIN}
"""


@dataclass(frozen=True)
class _Section:
    """One file's part of a patch."""

    change: FileChange
    mode: str
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
        yield f"diff --git {old} {new}\nindex {ids} {self.mode}\n".encode()
        yield from self.plain_lines()

    def plain_lines(self) -> Iterator[bytes]:
        # As git does: a tab ends a name that holds a space, or GNU patch would cut the name there.
        end = "\t\n" if " " in self.change.path else "\n"
        yield f"--- {_quoted('a/' + self.change.path)}{end}".encode()
        yield f"+++ {_quoted('b/' + self.change.path)}{end}".encode()
        for hunk in self.hunks:
            yield from hunk.rendered()


def unified(plan: Plan) -> bytes:
    """A plain unified diff that `git apply` and `patch -p1` take."""
    return b"".join(line for section in _sections(plan) for line in section.plain_lines())


def git_mailbox(plan: Plan, mail: Mail) -> bytes:
    """A mailbox of one message that `git am` takes; raises `UsageError` for a bad author."""
    return _mailbox(plan, mail, b"")


def dep3(plan: Plan, mail: Mail) -> bytes:
    """`git_mailbox` with DEP-3 fields in its header, for Debian; `git am` passes over them."""
    fields = (
        f"Origin: other, {ORIGIN}\n"
        f"Bug: {ORIGIN}\n"
        f"Forwarded: {ORIGIN}\n"
        f"Last-Update: {mail.date:%Y-%m-%d}\n"
    )
    return _mailbox(plan, mail, fields.encode())


def blob_id(data: bytes) -> str:
    """The name git gives to these bytes in a SHA-1 repository."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def file_mode(path: Path) -> str:
    """git's mode for a file on disk, "100755" when its owner may run it; "100644" when missing."""
    try:
        executable = path.stat().st_mode & stat.S_IXUSR
    except OSError:
        return "100644"
    return "100755" if executable else "100644"


def _sections(plan: Plan) -> list[_Section]:
    root = plan.tree.root
    return [
        _Section(each, file_mode(root / each.path), hunks(each.before, each.after))
        for each in sorted(plan.changes, key=lambda change: change.path)
        if each.before != each.after
    ]


def _mailbox(plan: Plan, mail: Mail, fields: bytes) -> bytes:
    sections = _sections(plan)
    if not sections:
        return b""
    # A path that is not UTF-8 is named in the body as Python writes it.
    body = _body(plan).encode("utf-8", "backslashreplace")
    header = mail.header() + fields
    if not body.isascii():
        header += (
            b"MIME-Version: 1.0\n"
            b"Content-Type: text/plain; charset=UTF-8\n"
            b"Content-Transfer-Encoding: 8bit\n"
        )
    parts = [header, b"\n", body, b"---\n", _diffstat(sections).encode(), b"\n"]
    return b"".join(parts) + b"".join(line for each in sections for line in each.git_lines())


def _body(plan: Plan) -> str:
    """What was changed and why; no line can be taken for the start of a diff or a header."""
    import textwrap

    from codemods.report import version

    edits = [outcome for outcome in plan.outcomes if outcome.status is Status.EDIT]
    why = _WHY
    if any(outcome.edit is EditName.KERNEL for outcome in edits):
        why += _WHY_KERNEL
    bullets = [
        textwrap.fill(
            f"- {outcome.edit.value}, {outcome.file}: {outcome.detail}",
            width=72,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for outcome in edits
    ]
    what = "\n".join(["What changes:", "", *bullets, ""])
    return "\n".join([why, what, _CREDIT, f"Made by vllm-codemods {version()}.\n"])


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
