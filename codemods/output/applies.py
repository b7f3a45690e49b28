"""Does a patch, applied to the tree's files, give the bytes that `apply` writes?

The applier is strict: it takes no line that is not where the hunk says it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codemods.engine.hunks import split_lines
from codemods.engine.plan import FileChange

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def applies_exactly(changes: Sequence[FileChange], patch: bytes) -> bool:
    """Whether `patch` turns the files from before to after, to the byte.

    Each file's section begins at `--- `; hunk lines are counted, so content cannot mislead.
    """
    changing = [change for change in changes if change.before != change.after]
    sections = _sections(patch)
    if len(sections) != len(changing):
        return False
    ordered = sorted(changing, key=lambda change: change.path)
    return all(
        _patched(change.before, section) == change.after
        for change, section in zip(ordered, sections, strict=True)
    )


def _sections(patch: bytes) -> list[list[bytes]]:
    """The hunks' lines of each file's section."""
    sections: list[list[bytes]] = []
    lines = split_lines(patch)
    at = 0
    while at < len(lines):
        if lines[at].startswith(b"--- "):
            sections.append([])
            at += 2
            continue
        found = _HUNK.match(lines[at])
        if found is None or not sections:
            at += 1
            continue
        end = _hunk_end(lines, at + 1, int(found[2] or 1), int(found[4] or 1))
        sections[-1] += lines[at:end]
        at = end
    return sections


def _hunk_end(lines: list[bytes], at: int, before: int, after: int) -> int:
    """The index behind a hunk's last line, counted out from its heading."""
    while at < len(lines) and (before > 0 or after > 0 or lines[at].startswith(b"\\")):
        before -= lines[at][:1] in (b" ", b"-")
        after -= lines[at][:1] in (b" ", b"+")
        at += 1
    return at


def _patched(before: bytes, section: list[bytes]) -> bytes | None:
    """`before` with a section's hunks applied; None where a line is not as the hunk has it."""
    old = split_lines(before)
    result: list[bytes] = []
    at = 0
    for number, line in enumerate(section):
        if found := _HUNK.match(line):
            start = int(found[1]) - (found[2] != b"0")
            result += old[at:start]
            at = start
            continue
        if line.startswith(b"\\"):
            continue
        unended = section[number + 1 : number + 2]
        text = line[1:-1] if unended and unended[0].startswith(b"\\") else line[1:]
        if not line.startswith(b"+"):
            if old[at : at + 1] != [text]:
                return None
            at += 1
        if not line.startswith(b"-"):
            result.append(text)
    return b"".join(result + old[at:])
