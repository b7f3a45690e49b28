"""Runs a rewrite of one file, and lets no test forget what must hold of every one.

The result parses, a second run changes nothing, nothing that stood in the file is lost or moved,
and what ruff found well formatted before it finds so after.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from textwrap import dedent

from ruff.__main__ import find_ruff_bin

Rewrite = Callable[[bytes], bytes]

FIRST_PARTY = ("--config", 'lint.isort.known-first-party = ["vllm"]')
_TOKEN = re.compile(rb"\w+|[^\w\s]|\f")


def rewrites(rewrite: Rewrite, before: str | bytes, after: str | bytes, *, loses: str = "") -> None:
    """Assert that `before` becomes `after`; `loses` are the tokens that it may lose, in order."""
    was, expected = as_bytes(before), as_bytes(after)
    assert was != expected, "a case that changes nothing belongs to leaves_alone"
    now = rewrite(was)
    assert now == expected, _shown("expected", expected, "got", now)
    sound(rewrite, was, now, loses=loses)


def leaves_alone(rewrite: Rewrite, source: str | bytes) -> None:
    """Assert that not a byte changes."""
    was = as_bytes(source)
    now = rewrite(was)
    assert now == was, _shown("before", was, "after", now)


def sound(rewrite: Rewrite, was: bytes, now: bytes, *, loses: str = "") -> None:
    """Assert what holds of every result, whatever text was expected."""
    shown = _shown("before", was, "after", now)
    try:
        compile(now, "result", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise AssertionError(f"the result does not parse: {error}\n{shown}") from None
    again = rewrite(now)
    assert again == now, _shown("first run", now, "second run", again)
    faults = [*_losses(was, now, loses), *_foreign_line_ends(was, now)]
    assert not faults, "\n".join([*faults, shown])
    if formatted(was):
        assert formatted(now), f"ruff would format the result otherwise\n{_as_ruff(now)}\n{shown}"


@cache
def formatted(source: bytes) -> bool:
    """Whether ruff's formatter and its import order, as they come, find nothing to change."""
    return all(
        _ruff(arguments, source).returncode == 0
        for arguments in (("format", "--check"), ("check", "--select", "E,W,I", *FIRST_PARTY))
    )


def as_bytes(source: str | bytes) -> bytes:
    """Text as a test writes it, indented and begun on a line of its own, in UTF-8."""
    return source if isinstance(source, bytes) else dedent(source).removeprefix("\n").encode()


def _losses(was: bytes, now: bytes, loses: str) -> Iterator[str]:
    """What stood in `was` and is not, in the same order and place, in `now`."""
    old, new = was.splitlines(keepends=True), now.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lost: list[bytes] = []
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        there = iter(_TOKEN.findall(b"".join(new[new_start:new_end])))
        lost += [token for token in _TOKEN.findall(b"".join(old[start:end])) if token not in there][
            :1
        ]
    if [token.decode() for token in lost] != loses.split():
        yield f"lost or moved: {b' '.join(lost).decode('latin-1')}"


def _foreign_line_ends(was: bytes, now: bytes) -> Iterator[str]:
    """Lines that came in, where they do not end as every line of the file does."""
    ends = {line[len(line.rstrip(b"\r\n")) :] for line in was.splitlines(keepends=True)} - {b""}
    if len(ends) == 1:
        for number, line in enumerate(now.splitlines(keepends=True), 1):
            end = line[len(line.rstrip(b"\r\n")) :]
            if end and end not in ends:
                yield f"line {number} ends with {end!r}"


def _ruff(arguments: tuple[str, ...], source: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [find_ruff_bin(), *arguments, "--isolated", "--no-cache", "-q", "-"],
        input=source,
        capture_output=True,
        check=False,
    )


def _as_ruff(source: bytes) -> str:
    done = _ruff(("format",), source)
    return _shown("got", source, "as ruff has it", done.stdout) + done.stderr.decode()


def _shown(one: str, first: bytes, other: str, second: bytes) -> str:
    """The difference of two files, line ends and odd bytes made visible."""
    lines = [
        [repr(line)[2:-1] for line in data.splitlines(keepends=True)] for data in (first, second)
    ]
    return "\n".join(difflib.unified_diff(*lines, one, other, lineterm="", n=2))
