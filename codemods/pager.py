"""A plan's diff for a reader at a terminal: coloured, each hunk under its edit and reason, paged.

Colours, the choice of the pager and its environment are git's (git-config: core.pager, pager.diff,
color.ui, color.diff; git-var: GIT_PAGER). A pipe, a file, NO_COLOR and TERM=dumb get plain bytes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from codemods.hunks import Hunk, hunks, split_lines
from codemods.outcome import FileChange, Outcome, Plan

_BOLD, _CYAN, _RED, _GREEN, _YELLOW, _RESET = (
    b"\033[1m", b"\033[36m", b"\033[31m", b"\033[32m", b"\033[33m", b"\033[m",
)  # fmt: skip


def show(plan: Plan, patch: bytes, out: BinaryIO, environ: Mapping[str, str] = os.environ) -> None:
    """Write `patch` to `out`; on a terminal, the same diff as a reader wants it, by the pager.

    What is written to anything but a terminal is `patch`, byte for byte.
    """
    if not patch or not out.isatty():
        out.write(patch)
        out.flush()
        return
    root = plan.tree.root
    text = patch
    if wants_colour(root, environ):
        text = b"".join(coloured(plan, patch))
    pager = choose_pager(root, environ)
    if pager is None or not _paged(pager, text, environ):
        out.write(text)
        out.flush()


def coloured(plan: Plan, patch: bytes) -> Iterator[bytes]:
    """The plan's patch with git's colours, and before each hunk a line for each edit made in it."""
    at = 0
    for change in sorted(plan.changes, key=lambda change: change.path):
        for hunk in hunks(change.before, change.after):
            body = b"".join(hunk.rendered())
            start = patch.index(body, at)
            yield from map(_heading, split_lines(patch[at:start]))
            yield from (_note(outcome) for outcome in _edits_in(hunk, change, plan))
            yield from map(_hunk_line, hunk.rendered())
            at = start + len(body)


def wants_colour(root: Path, environ: Mapping[str, str]) -> bool:
    """Whether a terminal should get colour: not under NO_COLOR, TERM=dumb or git's color.diff."""
    if environ.get("NO_COLOR") or environ.get("TERM", "dumb") == "dumb":
        return False
    # The second argument tells git that its answer is for a terminal.
    return _git(["config", "--get-colorbool", "color.diff", "true"], root, environ) != "false"


def choose_pager(root: Path, environ: Mapping[str, str]) -> str | None:
    """The shell command git would page a diff through; None for none.

    git's order: pager.diff, GIT_PAGER, core.pager, PAGER, less. "" and "cat" mean no pager.
    """
    own = _git(["config", "--get", "pager.diff"], root, environ)
    if own in ("false", "no", "off", "0"):
        return None
    named = own if own not in (None, "", "true", "yes", "on", "1") else None
    pager = named or environ.get("GIT_PAGER")
    if pager is None:
        pager = _git(["config", "--get", "core.pager"], root, environ)
    if pager is None:
        pager = environ.get("PAGER", "less")
    return None if pager in ("", "cat") else pager


def _paged(pager: str, text: bytes, environ: Mapping[str, str]) -> bool:
    """Give `text` to the pager; False when there is no such program, and nothing was shown."""
    # As git: less quits when all fits, keeps colours, and leaves the text on the screen.
    variables = {"LESS": "FRX", "LV": "-c"} | dict(environ)
    try:
        process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=variables)
    except OSError:
        return False
    try:
        process.communicate(text)
    except BrokenPipeError:
        pass  # the reader has seen enough
    except KeyboardInterrupt:
        process.wait()  # less took the key and still owns the screen
    # A shell's exit status for a command that it cannot find or run.
    return process.returncode not in (126, 127)


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
    said = f"{outcome.edit.value} ({outcome.reason.value}): {outcome.detail}"
    line = f"# {' '.join(said.split())}\n"
    return _painted(_YELLOW, line.encode("utf-8", "backslashreplace"))


def _heading(line: bytes) -> bytes:
    section = line.startswith((b"diff --git ", b"index ", b"--- ", b"+++ "))
    return _painted(_BOLD, line) if section else line


def _hunk_line(line: bytes) -> bytes:
    paint = {b"@": _CYAN, b"-": _RED, b"+": _GREEN}.get(line[:1])
    return _painted(paint, line) if paint else line


def _painted(paint: bytes, line: bytes) -> bytes:
    return paint + line.removesuffix(b"\n") + _RESET + b"\n"


def _git(arguments: list[str], root: Path, environ: Mapping[str, str]) -> str | None:
    """What git prints, without its line end; None when it fails, says nothing or is not there."""
    try:
        ran = subprocess.run(
            ["git", *arguments], cwd=root, env=dict(environ), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.decode("utf-8", "replace").rstrip("\n") if ran.returncode == 0 else None
