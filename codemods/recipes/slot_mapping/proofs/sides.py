"""The files of the tree that the slot-mapping proofs load, and what their processes are asked."""

from __future__ import annotations

from pathlib import Path

from codemods.engine.bound import Bound
from codemods.engine.checkout import WORKER
from codemods.engine.sources import Refusal, Sources
from codemods.prove.attributes import attributes, compared_with_none, set_from_outside
from codemods.prove.proof import Options
from codemods.prove.subject import Side, Subject, class_source, import_name, imported_roots, parse
from codemods.recipes.slot_mapping.proofs.call_site import call_sites
from codemods.recipes.slot_mapping.proofs.job import Job, SideFiles, WarmupCall
from codemods.recipes.slot_mapping.proofs.modules import (
    BLOCK_TABLE,
    BUFFERS,
    MODEL_RUNNER,
    WARMUP,
    WARMUP_FUNCTION,
    pad_slot_id,
    table_modules,
)
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.worker_call import Calls, Target, find_calls


def make_job(subject: Subject, options: Options, folder: Path, device: str = "cpu") -> Job | str:
    """Copy the modules under proof into `folder`; or one line saying what the tree lacks."""
    *before, after = [_side_files(subject, side, folder) for side in subject.sides]
    if isinstance(after, str):
        return after
    return Job(
        before=next((side for side in before if isinstance(side, SideFiles)), None),
        after=after,
        call_sites=call_sites(subject.after),
        targets=options.targets,
        max_num_tokens=options.max_num_tokens,
        device=device,
    )


def _side_files(subject: Subject, side: Side, folder: Path) -> SideFiles | str:
    if side.read(BLOCK_TABLE) is None:
        return f"the tree has no {side.name(BLOCK_TABLE)}"
    package = import_name(side, (BLOCK_TABLE, WORKER))
    modules = {f"{package}.v1.worker.block_table": side.copy(BLOCK_TABLE, folder)}
    roots = imported_roots(side, BLOCK_TABLE)
    for name, relative in table_modules(side, package).items():
        modules[name] = side.copy(relative, folder)
        roots |= imported_roots(side, relative)
    found = _warmup(subject, side, package)
    if found is not None:
        home, warmup = found
        modules[warmup.module] = side.copy(home, folder)
        roots |= imported_roots(side, home)
    return SideFiles(
        package=package,
        modules=modules,
        spare=tuple(sorted(roots)),
        buffer_source=class_source(side, BUFFERS, "CpuGpuBuffer"),
        pad_slot_id=pad_slot_id(side),
        warmup=None if found is None else found[1],
    )


def _warmup(subject: Subject, side: Side, package: str) -> tuple[str, WarmupCall] | None:
    """The warm-up and the file of the package that has it, None where the side has none."""
    if side.label != "after" or not subject.in_force(edit_names.WARMUP):
        return None
    calls = _calls(side)
    reached = calls.reached if calls is not None else None
    home, function = WARMUP, WARMUP_FUNCTION
    if reached is not None and isinstance(reached.reached, Bound):
        home = reached.reached.file.name.removeprefix(side.name("x").removesuffix("x"))
        function = getattr(reached.reached.node, "name", WARMUP_FUNCTION)
    source = side.read(home)
    if source is None or parse(source) is None or f"def {function}(".encode() not in source:
        return None
    outside = set_from_outside(side, WORKER, "model_runner")
    runner = attributes(side, package, MODEL_RUNNER, "GPUModelRunner")
    return home, WarmupCall(
        module=f"{package}.{home.removesuffix('.py').replace('/', '.')}",
        function=function,
        runner=None if runner is None else sorted(runner | outside),
        batch=_names(attributes(side, package, MODEL_RUNNER, "InputBatch")),
        worker=_names(attributes(side, package, WORKER, "Worker")),
        maybe_none=sorted(compared_with_none(side, home)),
        takes_worker=reached is not None and reached.takes_worker,
    )


def _calls(side: Side) -> Calls | None:
    sources = Sources(side.checkout)
    try:
        file = sources.read(WORKER)
        return None if file is None else find_calls(file, Target(WARMUP_FUNCTION, sources=sources))
    except Refusal:
        return None


def _names(found: frozenset[str] | None) -> list[str] | None:
    return None if found is None else sorted(found)
