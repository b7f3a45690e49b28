"""Runs each slot-mapping proof in a process of its own, on copies of the files it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codemods.prove import proof_process
from codemods.prove.proof import Options, Proof
from codemods.prove.subject import Subject
from codemods.recipes.slot_mapping.proofs.job import Job

_PACKAGE = "codemods.recipes.slot_mapping.proofs"


def in_own_process(
    module: str, *, interpret: bool = False, device: str = "cpu"
) -> Callable[[Subject, Options], Proof]:
    """The proof of one of this package's modules; on a `device` its row is named for that."""
    return proof_process.in_own_process(
        f"{_PACKAGE}.{module}", _make_job, interpret=interpret, device=device
    )


def _make_job(subject: Subject, options: Options, folder: Path, device: str) -> Job | str:
    # Imports LibCST. The process of a proof imports this module too, and does not need LibCST.
    from codemods.recipes.slot_mapping.proofs.sides import make_job

    return make_job(subject, options, folder, device)


def serve(name: str, prove: Callable[[Job], Proof]) -> None:
    """Be the process that proves one job."""
    proof_process.serve(name, Job.from_json, prove)
