"""White space that a change brings in, as `git diff --check` finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.engine.hunks import hunks, split_lines
from codemods.engine.plan import FileChange

_SPACE_BEFORE_TAB = re.compile(rb"[ \t]* \t")
_CONFLICT = re.compile(rb"(?:<{7}|={7}|>{7}|\|{7})(?:\s|$)")


def complaints(change: FileChange) -> list[str]:
    """A line for each fault of an added line; carriage returns are none where the file has them."""
    has_returns = b"\r\n" in change.before
    found = [
        f"{change.path}:{number}: {fault}"
        for number, line in _added(change)
        for fault in _faults(line.removesuffix(b"\r") if has_returns else line)
    ]
    blank, was = _blank_lines(change.after), _blank_lines(change.before)
    if blank > was and change.before:
        found.append(f"{change.path}:{len(split_lines(change.after))}: new blank line at the end")
    return found


def _added(change: FileChange) -> Iterator[tuple[int, bytes]]:
    for hunk in hunks(change.before, change.after):
        number = hunk.after_start
        for line in hunk.lines:
            if line.startswith(b"-"):
                continue
            number += 1
            if line.startswith(b"+"):
                yield number, line[1:].removesuffix(b"\n")


def _faults(line: bytes) -> Iterator[str]:
    if line != line.rstrip(b" \t\r"):
        yield "trailing whitespace"
    if _SPACE_BEFORE_TAB.match(line):
        yield "space before tab in indent"
    if _CONFLICT.match(line):
        yield "leftover conflict marker"


def _blank_lines(data: bytes) -> int:
    """How many blank lines end the file."""
    lines = split_lines(data)
    count = 0
    while count < len(lines) and not lines[-1 - count].strip():
        count += 1
    return count
