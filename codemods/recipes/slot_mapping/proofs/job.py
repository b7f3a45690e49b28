"""What the slot-mapping proofs ask their processes: plain data, which takes no parser to read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from codemods.recipes.slot_mapping.proofs.call_site import CallSite, Passed


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
    warmup: WarmupCall | None


@dataclass(frozen=True)
class WarmupCall:
    """The warm-up function: the dotted name of its module, and what it is called with.

    `runner`, `batch` and `worker` are the attributes that the tree's classes give the objects that
    the function may ask, None where these are unknown; `maybe_none` are names that its module
    compares with None. `takes_worker`: it is given the worker in place of the worker's runner.
    """

    module: str
    function: str
    runner: list[str] | None
    batch: list[str] | None
    worker: list[str] | None
    maybe_none: list[str]
    takes_worker: bool = False


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
    warmup = None if data["warmup"] is None else WarmupCall(**data["warmup"])
    return SideFiles(**{**data, "spare": tuple(data["spare"]), "warmup": warmup})
