"""A proof that runs code of the tree, in a process of its own, on copies of the files it needs."""

from __future__ import annotations

import gc
import importlib
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from codemods.prove import job
from codemods.prove.proof import Options, Proof, skipped
from codemods.prove.runner import run_worker, what_is_missing
from codemods.prove.subject import Subject


class Job(Protocol):
    """What a process is asked; `device` is where the tree's tensors go."""

    @property
    def device(self) -> str: ...

    def to_json(self) -> str: ...


AnyJob = TypeVar("AnyJob", bound=Job)
MakeJob = Callable[[Subject, Options, Path, str], "Job | str"]


def in_own_process(
    module: str, make_job: MakeJob, *, interpret: bool = False, device: str = "cpu"
) -> Callable[[Subject, Options], Proof]:
    """The proof of `module`, a dotted name; on a `device` its row is named for that.

    `make_job` copies the files that the proof needs into a folder, or says in one line what the
    tree lacks.
    """
    name = module.rpartition(".")[2].replace("_", "-")
    if device != "cpu" and not name.startswith("gpu-"):
        name = f"gpu-{name}"
    return partial(_prove, name, module, make_job, interpret, device)


def _prove(
    name: str,
    module: str,
    make_job: MakeJob,
    interpret: bool,
    device: str,
    subject: Subject,
    options: Options,
) -> Proof:
    lacking = what_is_missing()
    if lacking is not None:
        return skipped(name, lacking)
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
        made = make_job(subject, options, Path(folder), device)
        if isinstance(made, str):
            return skipped(name, made)
        return run_worker(
            name,
            module,
            made.to_json(),
            Path(folder),
            options.timeout,
            interpret=interpret,
            device=device,
        )


def serve(name: str, from_json: Callable[[str], AnyJob], prove: Callable[[AnyJob], Proof]) -> None:
    """Be the process that proves one job."""

    def prove_text(text: str) -> Proof:
        asked = from_json(text)
        _import_torch()
        _require(asked.device)
        return prove(asked)

    job.serve(name, prove_text)


def _import_torch() -> None:
    """Import what every proof uses while the collector is off, which need not look at it later.

    It would take a quarter of the time that the import takes.
    """
    gc.disable()
    importlib.import_module("torch")
    importlib.import_module("triton")
    gc.freeze()
    gc.enable()


def _require(device: str) -> None:
    """Raises CannotRunError where torch has no such device."""
    if device == "cpu":
        return
    import torch

    if not torch.cuda.is_available():
        raise job.CannotRunError("torch sees no GPU on this machine")
