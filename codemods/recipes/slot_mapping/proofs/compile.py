"""Proof 5, in a process of its own: the kernels compile for each target, before and after."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed, skipped
from codemods.prove.triton_binder import Binary, Binder, Launch, intercepted
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build, runner, supported
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.workers import serve

NAME = "compile"
# One engine with and one without context parallelism; token counts of each of Triton's classes.
ENGINES = (Engine(((16, 16),)), Engine(((32, 16),), interleave=2, dcp=(2, 1)))
BATCHES = ((1, 1), (1, 17), (2, 17), (2, 8192))


@dataclass
class Results:
    """What came of it: figures, targets a kernel does not compile for, targets Triton cannot do."""

    figures: dict[str, int | float | str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)


def prove(job: Job) -> Proof:
    results = Results()
    binders = [binder for target in job.targets if (binder := _able(target, results)) is not None]
    for label, files in (("before", job.before), ("after", job.after)):
        if files is None:
            continue
        # Kernels that did not change are compiled again too: the figures are of both sides.
        os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
        with loaded(files) as tree:
            launches = _launches(tree, job.call_sites)
            for binder in binders:
                _compile_all(launches, binder, label, results)
    if results.broken:
        return failed(NAME, f"does not compile: {'; '.join(results.broken)}", **results.figures)
    if results.lacking:
        told = "; ".join(f"{target} ({why})" for target, why in results.lacking.items())
        return skipped(NAME, f"this triton cannot compile anything for {told}", **results.figures)
    return passed(NAME, f"every kernel compiles for {', '.join(job.targets)}", **results.figures)


def _able(target: str, results: Results) -> Binder | None:
    """A binder for the target, if the smallest of kernels compiles for it."""
    import torch

    from codemods.prove.probe import probe

    try:
        binder = Binder(target)
        binder.compile(Launch(probe, (torch.zeros(1, dtype=torch.int32),), {}, (1,)))
    except Exception as error:
        results.lacking[target] = _told(error)
        return None
    return binder


def _launches(tree: Loaded, sites: tuple[CallSite, ...]) -> list[Launch]:
    """What the engines launch: the warm-up first, then a batch of each class."""
    made: list[Launch] = []
    for engine in (engine for engine in ENGINES if supported(tree, engine)):
        for site in sites:
            tables, inputs = build(tree, engine), buffers(engine, site)
            with intercepted(made.append):
                if tree.warmup is not None:
                    tree.warmup(runner(tree, tables, inputs))
                for num_reqs, num_tokens in BATCHES:
                    inputs.call(tables, num_reqs, num_tokens)
    if not made:
        raise CannotRunError("compute_slot_mapping launches no Triton kernel in this tree")
    return made


def _compile_all(launches: list[Launch], binder: Binder, label: str, results: Results) -> None:
    """Compile each key once, and keep the most registers, the largest binary, the time in all."""
    keys = {binder.key(launch): launch for launch in launches}
    binaries: list[Binary] = []
    for launch in keys.values():
        try:
            binaries.append(binder.compile(launch))
        except Exception as error:
            results.broken.append(f"{launch.name} {label} for {binder.target}: {_told(error)}")
    if not binaries:
        return
    figures = {
        "binaries": len(binaries),
        "registers": max((b.registers for b in binaries if b.registers is not None), default=None),
        "bytes": max(binary.size for binary in binaries),
        "milliseconds": sum(binary.milliseconds for binary in binaries),
    }
    for name, figure in figures.items():
        if figure is not None:
            results.figures[f"{binder.target} {name} {label}"] = figure


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}"


if __name__ == "__main__":
    serve(NAME, prove)
