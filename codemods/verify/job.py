"""A proof's work order for a process of its own, and how such a process answers.

The order goes in as JSON on stdin and the row comes out as JSON on stdout, so that nothing the
tree's code does (a crash, a hang, a changed global) reaches the tool.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from codemods.verify.call_site import CallSite, Passed
from codemods.verify.proof import Proof, ProofStatus, failed, skipped


class CannotRunError(Exception):
    """The proof lacks something that is not the rewrite's fault: one line says what."""


@dataclass(frozen=True)
class SideFiles:
    """One side of the tree as files on the disk.

    `modules` maps the dotted names of the tree's modules under proof to their files; `spare` are
    the first parts of names they import; `warmup` names the function, None where there is none.
    """

    package: str
    modules: dict[str, str]
    spare: tuple[str, ...]
    buffer_source: str | None
    pad_slot_id: int
    warmup: str | None


@dataclass(frozen=True)
class Job:
    """What a worker is asked: the sides, how the runner calls, the targets, and where to run."""

    before: SideFiles | None
    after: SideFiles
    call_sites: tuple[CallSite, ...]
    targets: tuple[str, ...]
    max_num_tokens: int
    device: str = "cpu"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        data = json.loads(text)
        return Job(
            before=None if data["before"] is None else _side(data["before"]),
            after=_side(data["after"]),
            call_sites=tuple(
                CallSite(
                    Passed(**site["query_start_loc"]), Passed(**site["positions"]), site["line"]
                )
                for site in data["call_sites"]
            ),
            targets=tuple(data["targets"]),
            max_num_tokens=data["max_num_tokens"],
            device=data["device"],
        )


def _side(data: dict[str, Any]) -> SideFiles:
    return SideFiles(**{**data, "spare": tuple(data["spare"])})


def serve(name: str, prove: Callable[[Job], Proof]) -> None:
    """Be the worker: read one job, answer with one row, whatever the tree's code does."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = Job.from_json(sys.stdin.read())
    try:
        _require(job.device)
        row = prove(job)
    except CannotRunError as reason:
        row = skipped(name, str(reason))
    except Exception as error:
        traceback.print_exc()
        row = failed(name, f"the tree's code raised {_told(error)}")
    json.dump(asdict(row), answer)
    answer.close()


def _require(device: str) -> None:
    """Raises CannotRunError where torch has no such device."""
    if device == "cpu":
        return
    import torch

    if not torch.cuda.is_available():
        raise CannotRunError("torch sees no GPU on this machine")


def proof_from(text: str) -> Proof:
    """A worker's answer. Raises ValueError when it is none."""
    data = json.loads(text)
    return Proof(data["name"], ProofStatus(data["status"]), data["detail"], data["figures"])


def _told(error: Exception) -> str:
    """An error in one line, with the last place in the code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}{where}: {message[:300]}"
