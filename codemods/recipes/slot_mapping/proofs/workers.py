"""Runs each slot-mapping proof in a process of its own, on copies of the files it needs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from codemods.prove.job import CannotRunError
from codemods.prove.job import serve as serve_text
from codemods.prove.proof import Options, Proof, skipped
from codemods.prove.runner import run_worker, what_is_missing
from codemods.prove.subject import Subject
from codemods.recipes.slot_mapping.proofs.job import Job, make_job

_PACKAGE = "codemods.recipes.slot_mapping.proofs"


def in_worker(
    module: str, *, interpret: bool = False, device: str = "cpu"
) -> Callable[[Subject, Options], Proof]:
    """The proof of one of this package's modules; on a `device` its row is named for that."""
    name = module.replace("_", "-")
    if device != "cpu" and not name.startswith("gpu-"):
        name = f"gpu-{name}"
    return partial(_prove, name, module, interpret, device)


def _prove(
    name: str, module: str, interpret: bool, device: str, subject: Subject, options: Options
) -> Proof:
    lacking = what_is_missing()
    if lacking is not None:
        return skipped(name, lacking)
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
        job = make_job(subject, options, Path(folder), device)
        if isinstance(job, str):
            return skipped(name, job)
        return run_worker(
            name,
            f"{_PACKAGE}.{module}",
            job.to_json(),
            Path(folder),
            options.timeout,
            interpret=interpret,
            device=device,
        )


def serve(name: str, prove: Callable[[Job], Proof]) -> None:
    """Be the process that proves one job."""

    def prove_text(text: str) -> Proof:
        job = Job.from_json(text)
        _require(job.device)
        return prove(job)

    serve_text(name, prove_text)


def _require(device: str) -> None:
    """Raises CannotRunError where torch has no such device."""
    if device == "cpu":
        return
    import torch

    if not torch.cuda.is_available():
        raise CannotRunError("torch sees no GPU on this machine")
