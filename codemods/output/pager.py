"""A plan's diff for a reader at a terminal: coloured, each hunk under its edit and reason, paged.

The pager is PAGER of the environment, else `less`, else none; nothing that the tree names is run.
A pipe and a file get plain bytes, and NO_COLOR and TERM=dumb no colours.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from codemods.engine.hunks import Hunk, hunks, split_lines
from codemods.engine.plan import FileChange, Outcome, Plan
from codemods.engine.programs import find_program

_BOLD, _CYAN, _RED, _GREEN, _YELLOW, _RESET = (
    b"\033[1m", b"\033[36m", b"\033[31m", b"\033[32m", b"\033[33m", b"\033[m",
)  # fmt: skip


def show(plan: Plan, patch: bytes, out: BinaryIO, environ: Mapping[str, str] = os.environ) -> None:
    """Write `patch` to `out`; on a terminal, the same diff as a reader wants it, by the pager.

    What is written to anything but a terminal is `patch`, byte for byte. On a terminal, control and
    bidirectional characters of the tree's lines are escaped.
    """
    if not patch or not out.isatty():
        out.write(patch)
        out.flush()
        return
    lines = coloured(plan, patch) if wants_colour(environ) else map(_visible, split_lines(patch))
    text = b"".join(lines)
    pager = choose_pager(environ)
    if pager is None or not _paged(pager, text, environ):
        out.write(text)
        out.flush()


def coloured(plan: Plan, patch: bytes) -> Iterator[bytes]:
    """The plan's patch with git's colours, and before each hunk a line for each edit made in it."""
    at = 0
    for change in plan.changes:
        for hunk in hunks(change.before, change.after):
            body = b"".join(hunk.rendered())
            start = patch.find(body, at)
            if start < 0:
                continue  # a series of patches has other hunks where two recipes meet
            yield from map(_heading, split_lines(patch[at:start]))
            yield from (_note(outcome) for outcome in _edits_in(hunk, change, plan))
            yield from map(_hunk_line, hunk.rendered())
            at = start + len(body)
    yield from map(_heading, split_lines(patch[at:]))


def wants_colour(environ: Mapping[str, str]) -> bool:
    """Whether a terminal gets colour: not under NO_COLOR or TERM=dumb."""
    return not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"


def choose_pager(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """The pager's command line; None for none, as PAGER's "" and "cat" say too."""
    named = environ.get("PAGER")
    if named is None:
        return ("less",) if find_program("less") else None
    try:
        words = tuple(shlex.split(named))
    except ValueError:  # an open quote
        return None
    return None if words in ((), ("cat",)) else words


def _paged(pager: tuple[str, ...], text: bytes, environ: Mapping[str, str]) -> bool:
    """Give `text` to the pager; False when there is no such program, and nothing was shown."""
    # As git: less quits when all fits, keeps colours, and leaves the text on the screen.
    variables = {"LESS": "FRX", "LV": "-c"} | dict(environ)
    program = find_program(pager[0])
    if program is None:
        return False
    try:
        process = subprocess.Popen([program, *pager[1:]], stdin=subprocess.PIPE, env=variables)
    except OSError:
        return False
    try:
        process.communicate(text)
    except BrokenPipeError:
        pass  # the reader has seen enough
    except KeyboardInterrupt:
        process.wait()  # less handles Ctrl-C itself
    return True


def _edits_in(hunk: Hunk, change: FileChange, plan: Plan) -> list[Outcome]:
    """The outcomes that point at a line of this hunk; where none does, all of the file's.

    An edit of two hunks (an import and a call) points at one of them only.
    """
    here = [
        outcome
        for outcome in plan.outcomes
        if outcome.file == change.path and outcome.edit in change.edits
    ]
    pointed = [outcome for outcome in here if outcome.line and hunk.holds(outcome.line)]
    return pointed or here


def _note(outcome: Outcome) -> bytes:
    text = f"{outcome.edit} ({outcome.reason.value}): {outcome.detail}"
    line = f"# {' '.join(text.split())}\n"
    return _painted(_YELLOW, line.encode("utf-8", "backslashreplace"))


def _heading(line: bytes) -> bytes:
    section = line.startswith((b"diff --git ", b"index ", b"--- ", b"+++ "))
    return _painted(_BOLD, line) if section else _visible(line)


def _hunk_line(line: bytes) -> bytes:
    paint = {b"@": _CYAN, b"-": _RED, b"+": _GREEN}.get(line[:1])
    return _painted(paint, line) if paint else _visible(line)


def _painted(paint: bytes, line: bytes) -> bytes:
    return paint + _visible(line).removesuffix(b"\n") + _RESET + b"\n"


def _visible(line: bytes) -> bytes:
    """A line on which a terminal cannot act; tabs and the line's end stay."""
    body = line.rstrip(b"\r\n")
    text = body.decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)
    return shown.encode() + line[len(body) :]
