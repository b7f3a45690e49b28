"""Two versions of a file -> the hunks that lead from one to the other, as `diff -u` cuts them.

Lines end at b"\\n" and nowhere else, so a carriage return or a form feed is part of its line, as
git and GNU patch see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CONTEXT = 3


@dataclass(frozen=True)
class Hunk:
    """One hunk: where it starts in each version, counted from 0, and its lines.

    Each line begins with b" ", b"-" or b"+"; it lacks b"\\n" at its end only when the file does.
    """

    before_start: int
    after_start: int
    lines: tuple[bytes, ...]

    @property
    def before_length(self) -> int:
        return sum(1 for line in self.lines if not line.startswith(b"+"))

    @property
    def after_length(self) -> int:
        return sum(1 for line in self.lines if not line.startswith(b"-"))

    @property
    def heading(self) -> bytes:
        before = _range(self.before_start, self.before_length)
        after = _range(self.after_start, self.after_length)
        return f"@@ -{before} +{after} @@\n".encode()

    def holds(self, line: int) -> bool:
        """Whether a line of the new file, counted from 1, is in this hunk."""
        return self.after_start < line <= self.after_start + self.after_length

    def rendered(self) -> Iterator[bytes]:
        """The hunk's lines as a patch holds them, each with its line end."""
        yield self.heading
        for line in self.lines:
            if line.endswith(b"\n"):
                yield line
            else:
                yield line + b"\n"
                yield b"\\ No newline at end of file\n"


@dataclass(frozen=True)
class _Stretch:
    """Lines [before_start, before_end) of one version became [after_start, after_end)."""

    before_start: int
    before_end: int
    after_start: int
    after_end: int


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data`, ends kept; only the last may lack its b"\\n"."""
    *whole, rest = data.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, rest] if rest else lines


def hunks(before: bytes, after: bytes) -> tuple[Hunk, ...]:
    """The hunks between two versions, three lines of context around each; none when equal."""
    if before == after:
        return ()
    old, new = split_lines(before), split_lines(after)
    groups: list[list[_Stretch]] = []
    for stretch in _stretches(old, new):
        if groups and stretch.before_start - groups[-1][-1].before_end <= 2 * CONTEXT:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return tuple(_hunk(group, old, new) for group in groups)


def only_adds(before: bytes, after: bytes) -> bool:
    """Whether `after` holds all of `before`, in order and with no more than text put in between.

    May say no where a change is large and the texts are alike in several ways.
    """
    old, new = split_lines(before), split_lines(after)
    for stretch in _stretches(old, new):
        gone = b"".join(old[stretch.before_start : stretch.before_end])
        come = b"".join(new[stretch.after_start : stretch.after_end])
        shorter = min(len(gone), len(come))
        start = next((at for at in range(shorter) if gone[at] != come[at]), shorter)
        if not come[start:].endswith(gone[start:]):
            return False
    return True


def moved_line(line: int, before: bytes, after: bytes) -> int:
    """Where a line of `before`, counted from 1, is in `after`; near it, where it is gone."""
    shift = 0
    for hunk in hunks(before, after):
        at = hunk.before_start
        for text in hunk.lines:
            if text.startswith(b" "):
                at += 1
                if at == line:
                    return line + shift
            elif text.startswith(b"-"):
                at += 1
                shift -= at <= line
            elif at < line:
                shift += 1
        if at >= line:
            break
    return max(1, min(line + shift, len(split_lines(after))))


def _stretches(old: list[bytes], new: list[bytes]) -> Iterator[_Stretch]:
    """What differs, in order; only the part between the common start and end is compared."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    from difflib import SequenceMatcher  # check needs it for few trees

    middle = SequenceMatcher(
        None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False
    )
    for tag, i1, i2, j1, j2 in middle.get_opcodes():
        if tag != "equal":
            yield _Stretch(start + i1, start + i2, start + j1, start + j2)


def _hunk(group: list[_Stretch], old: list[bytes], new: list[bytes]) -> Hunk:
    lead = min(CONTEXT, group[0].before_start)
    at = group[0].before_start - lead
    lines: list[bytes] = []
    for stretch in group:
        lines += [b" " + line for line in old[at : stretch.before_start]]
        lines += [b"-" + line for line in old[stretch.before_start : stretch.before_end]]
        lines += [b"+" + line for line in new[stretch.after_start : stretch.after_end]]
        at = stretch.before_end
    lines += [b" " + line for line in old[at : at + CONTEXT]]
    return Hunk(group[0].before_start - lead, group[0].after_start - lead, tuple(lines))


def _range(start: int, length: int) -> str:
    """A hunk's range as POSIX writes it: the length 1 is left out, an empty range counts from 0."""
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
