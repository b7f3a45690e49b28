"""What the proofs ask their processes, and the files of the tree that these load."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codemods.engine.checkout import WORKER
from codemods.engine.sources import Refusal, Sources
from codemods.prove.modules import modules_of
from codemods.prove.proof import Options
from codemods.prove.subject import Side, Subject, import_name, imported_roots
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from codemods.recipes.kv_block_zeroing.facts import runners
from codemods.recipes.kv_block_zeroing.facts.names import CLASS, UTILS
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.warmup_edit import MODULE


@dataclass(frozen=True)
class SideFiles:
    """One side of the tree as files on the disk.

    `modules` maps the dotted names of the tree's modules under proof to their files; `spare` are
    the first parts of names they import; `warm` says whether our warm-up is among them.
    """

    package: str
    modules: dict[str, str]
    spare: tuple[str, ...]
    warm: bool


@dataclass(frozen=True)
class Job:
    """What a worker is asked: the sides, the runners' names for a zeroer, targets, the device."""

    before: SideFiles | None
    after: SideFiles
    attributes: tuple[str, ...]
    targets: tuple[str, ...]
    device: str = "cpu"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        data = json.loads(text)
        return Job(
            before=None if data["before"] is None else _side(data["before"]),
            after=_side(data["after"]),
            attributes=tuple(data["attributes"]),
            targets=tuple(data["targets"]),
            device=data["device"],
        )


def _side(data: dict[str, Any]) -> SideFiles:
    return SideFiles(**{**data, "spare": tuple(data["spare"])})


def make_job(subject: Subject, options: Options, folder: Path, device: str) -> Job | str:
    """Copy the modules under proof into `folder`; or one line saying what the tree lacks."""
    if subject.after.read(UTILS) is None:
        return f"the tree has no {subject.after.name(UTILS)}"
    try:
        held = runners.attributes(Sources(subject.after.checkout))
    except Refusal as refusal:
        return refusal.detail
    *before, after = [_side_files(subject, side, folder) for side in subject.sides]
    return Job(
        before=before[0] if before else None,
        after=after,
        attributes=tuple(dict.fromkeys(held.values())),
        targets=options.targets,
        device=device,
    )


def _side_files(subject: Subject, side: Side, folder: Path) -> SideFiles:
    package = import_name(side, (UTILS, WORKER))
    files = {
        f"{package}.v1.worker.utils": UTILS,
        **modules_of(side, package, UTILS, frozenset({CLASS})),
    }
    warm = side.label == "after" and subject.in_force(edit_names.WARMUP)
    warm = warm and f"def {FUNCTION}(".encode() in (side.read(MODULE) or b"")
    if warm:
        files[f"{package}.v1.worker.gpu.warmup"] = MODULE
    roots = frozenset[str]().union(*(imported_roots(side, one) for one in files.values()))
    modules = {name: side.copy(relative, folder) for name, relative in files.items()}
    return SideFiles(package, modules, tuple(sorted(roots)), warm)
