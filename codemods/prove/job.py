"""How a proof's process of its own is asked, and how it answers.

The question goes in as JSON on stdin and one row comes out as JSON through a pipe that nothing else
is given, so that nothing the tree's code does (a crash, a hang, a changed global) reaches the tool.
An answer counts only with the question's token, which is read before any code of the tree is
loaded. Code in the same process can still find it: a proof shows nothing about a tree that means to
deceive.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from codemods.prove.proof import Proof, ProofStatus, failed, skipped

_MOST_FIGURES = 1_000
_LONGEST = 10_000  # letters of a detail or a figure


class CannotRunError(Exception):
    """The proof lacks something that is not the rewrite's fault: one line says what."""


class NoAnswerError(Exception):
    """What came back is no answer to the question; the message says in what way."""


@dataclass(frozen=True)
class Question:
    """What a process is asked: the row, the job in its proof's own terms, where to import from."""

    token: str
    row: str
    job: str
    path: list[str]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class _Asked:
    """The question of this process, until `serve` takes it."""

    question: Question | None = None
    answering: int = -1


_asked = _Asked()


def start(module: str, answering: int) -> NoReturn:
    """Be a proof's process: read the question, then run the module that serves it."""
    import runpy

    os.set_inheritable(answering, False)
    _asked.question = Question(**json.loads(sys.stdin.buffer.read()))
    _asked.answering = answering
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _end_with_parent()
    sys.path[:] = _asked.question.path
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


def serve(name: str, prove: Callable[[str], Proof]) -> None:
    """Answer the question of this process with one row, whatever the tree's code does."""
    question, answering = _asked.question, _asked.answering
    assert question is not None
    _asked.question = None
    try:
        row = prove(question.job)
    except CannotRunError as reason:
        row = skipped(name, str(reason))
    except Exception as error:
        traceback.print_exc()
        if _asks_for_a_driver(error):
            row = skipped(name, "Triton asks for a GPU's driver here, as for autotune")
        else:
            row = failed(name, _described(error))
    answer = {**asdict(row), "name": question.row, "token": question.token}
    with os.fdopen(answering, "w", encoding="utf-8") as pipe:
        json.dump(answer, pipe)


def _end_with_parent() -> None:
    """Have the kernel end this process when the tool is killed."""
    if sys.platform == "linux":
        import ctypes
        import signal

        parent_death_signal = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
        ctypes.CDLL(None).prctl(parent_death_signal, int(signal.SIGKILL), 0, 0, 0)


def proof_from(answer: bytes, question: Question) -> Proof:
    """A process's answer to the question. Raises NoAnswerError."""
    if not answer:
        raise NoAnswerError("it did not answer")
    try:
        data = json.loads(answer)
        if data.pop("token") != question.token or data["name"] != question.row:
            raise NoAnswerError("it answered another question")
        proof = Proof(data["name"], ProofStatus(data["status"]), data["detail"], data["figures"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NoAnswerError("its answer is no row") from None
    if not _is_text(proof.detail) or not _are_figures(proof.figures):
        raise NoAnswerError("its answer is no row")
    return proof


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST


def _are_figures(figures: Any) -> bool:
    """Whether these are figures as a row has them, by name."""
    if not isinstance(figures, dict) or len(figures) > _MOST_FIGURES:
        return False
    return all(_is_text(name) and _is_figure(figure) for name, figure in figures.items())


def _is_figure(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _asks_for_a_driver(error: Exception) -> bool:
    """Whether Triton itself raised, in looking for the driver of a GPU that is not there."""
    last = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    return last.name == "driver.py" and "triton" in last.parts


def _described(error: Exception) -> str:
    """An error in one line, with the last place in the tree's code that it came through."""
    places = [
        f"{path}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (path := _in_the_tree(frame.filename)) is not None
    ]
    message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if places:
        return f"the tree's code raised at {places[-1]}: {message}"
    return f"the tree's code cannot be used as this proof does: {message}"


def _in_the_tree(file: str) -> str | None:
    """The tree's name for a copy of its file, which lies under its side's label."""
    folder = os.environ.get("TMPDIR", "")
    if not folder or not file.startswith(f"{folder}{os.sep}"):
        return None
    return Path(file).relative_to(folder).as_posix().partition("/")[2] or None
