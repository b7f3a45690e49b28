"""Loads the tree's own zeroer and warm-up, inside a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.standins import (
    Parallelism,
    RunnerStandIn,
    StandIn,
    StandInFinder,
    imported,
    installed,
    known_names,
)
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from codemods.recipes.kv_block_zeroing.facts.names import CLASS
from codemods.recipes.kv_block_zeroing.proofs.job import SideFiles


class FullAttentionSpec(RunnerStandIn):
    """The KV cache specification that the zeroer asks for by its class."""


@dataclass(frozen=True)
class Loaded:
    """The tree's class of one side and our warm-up, with what was stood in for."""

    zeroer: type[Any]
    warmup: Callable[[Any], object] | None
    stand_ins: tuple[str, ...]

    @property
    def description(self) -> str:
        """What was stood in for, for a row's figures."""
        return ", ".join(self.stand_ins)


@contextmanager
def loaded(files: SideFiles) -> Iterator[Loaded]:
    """Import one side's modules; they can be used only inside the context.

    Raises CannotRunError when they ask at import for something nothing stands in for.
    """
    known = known_names(Parallelism(), -1, StandIn)
    known |= {
        "FullAttentionSpec": FullAttentionSpec,
        "largest_power_of_2_divisor": lambda number: number & -number,
    }
    finder = StandInFinder(
        package=files.package,
        own={name: Path(path) for name, path in files.modules.items()},
        known=known,
        spare=frozenset(files.spare),
    )
    with installed(finder):
        zeroer = getattr(imported(f"{files.package}.v1.worker.utils"), CLASS, None)
        if zeroer is None:
            raise CannotRunError(f"the tree's module has no {CLASS}")
        warmup = None
        if files.warm:
            warmup = getattr(imported(f"{files.package}.v1.worker.gpu.warmup"), FUNCTION)
        yield Loaded(zeroer, warmup, tuple(sorted(finder.taken)))
