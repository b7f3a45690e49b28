"""Judges the bytes of a rewrite: what stood in a file stays there, in its order and form."""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Iterator, Mapping

TOKEN = re.compile(rb"\w+|[^\w\s]|\f")
# A line that the rewrite may replace: of an import, a decorator, or a list that a decorator names.
OURS = re.compile(
    rb"import|^\s*@|do_not_specialize|^\w+\s*(?::[^=]*)?=\s*[\[(]|^\s+(?:\w+|['\"]\w+['\"]),?$"
)


def faults(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """What is wrong with the bytes; the trees map paths to bytes."""
    if set(before) != set(after):
        return ["a file came or went"]
    changed = [path for path in before if before[path] != after[path]]
    return [
        f"{path}: {fault}" for path in changed for fault in _of_a_file(before[path], after[path])
    ]


def _of_a_file(before: bytes, after: bytes) -> Iterator[str]:
    try:
        compile(after, "after", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        yield f"does not compile: {error}"
    if before.startswith(codecs.BOM_UTF8) != after.startswith(codecs.BOM_UTF8):
        yield "the BOM came or went"
    if bool(before) and before.endswith((b"\n", b"\r")) != after.endswith((b"\n", b"\r")):
        yield "the last line's end came or went"
    was, now = before.splitlines(keepends=True), after.splitlines(keepends=True)
    ends = {_end(line) for line in was} - {b""}
    matcher = difflib.SequenceMatcher(None, was, now, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        gone, come = was[start:end], now[new_start:new_end]
        kept = iter(TOKEN.findall(b"".join(come)))
        for line in gone:
            given_an_end = bool(come) and line == come[0].rstrip(b"\r\n")
            if not given_an_end and not OURS.search(line.rstrip(b"\r\n")):
                yield f"a line that is not ours went or changed: {line!r}"
            if lost := [token for token in TOKEN.findall(line) if token not in kept]:
                yield f"{lost[0]!r} is lost from {line!r}"
        if len(ends) == 1:
            yield from (
                f"{line!r} has another line end" for line in come if _end(line) not in {b"", *ends}
            )


def _end(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :]
