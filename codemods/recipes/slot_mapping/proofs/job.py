"""What the slot-mapping proofs ask their processes, and the files of the tree that these load."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codemods.engine.checkout import WORKER
from codemods.prove.proof import Options
from codemods.prove.subject import Side, Subject, class_source, import_name, imported_roots, parse
from codemods.recipes.slot_mapping.proofs.call_site import CallSite, Passed, call_sites
from codemods.recipes.slot_mapping.proofs.modules import (
    BLOCK_TABLE,
    BUFFERS,
    WARMUP,
    WARMUP_FUNCTION,
    pad_slot_id,
    table_modules,
)
from codemods.recipes.warm_up import edit_names


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
    warm = _has_warmup(subject, side)
    if warm:
        modules[f"{package}.v1.worker.gpu.warmup"] = side.copy(WARMUP, folder)
        roots |= imported_roots(side, WARMUP)
    return SideFiles(
        package=package,
        modules=modules,
        spare=tuple(sorted(roots)),
        buffer_source=class_source(side, BUFFERS, "CpuGpuBuffer"),
        pad_slot_id=pad_slot_id(side),
        warmup=WARMUP_FUNCTION if warm else None,
    )


def _has_warmup(subject: Subject, side: Side) -> bool:
    if side.label != "after" or not subject.in_force(edit_names.WARMUP):
        return False
    source = side.read(WARMUP)
    return source is not None and parse(source) is not None and WARMUP_FUNCTION.encode() in source
