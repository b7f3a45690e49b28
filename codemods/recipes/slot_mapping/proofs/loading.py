"""Loads the tree's own block table and warm-up, inside a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from codemods.prove.standins import (
    Parallelism,
    StandInFinder,
    buffer_class,
    imported,
    installed,
    known_names,
)
from codemods.recipes.slot_mapping.proofs.job import SideFiles


@dataclass(frozen=True)
class Loaded:
    """The tree's modules of one side, with what was stood in for."""

    block_table: ModuleType
    warmup: Callable[[Any], object] | None
    parallelism: Parallelism
    buffer: type[Any]
    stand_ins: tuple[str, ...]

    @property
    def told(self) -> str:
        """What was stood in for, for a row's figures."""
        return ", ".join(self.stand_ins)


@contextmanager
def loaded(files: SideFiles) -> Iterator[Loaded]:
    """Import one side's modules; they can be used only inside the context.

    Raises CannotRunError when they ask at import for something nothing stands in for.
    """
    parallelism = Parallelism()
    buffer, own_buffer = buffer_class(files.buffer_source)
    finder = StandInFinder(
        package=files.package,
        own={name: Path(path) for name, path in files.modules.items()},
        known=known_names(parallelism, files.pad_slot_id, buffer),
        spare=frozenset(files.spare),
    )
    with installed(finder):
        block_table = imported(f"{files.package}.v1.worker.block_table")
        warmup = None
        if files.warmup is not None:
            module = imported(f"{files.package}.v1.worker.gpu.warmup")
            warmup = getattr(module, files.warmup, None)
        names = finder.taken - ({"CpuGpuBuffer"} if own_buffer else set())
        yield Loaded(block_table, warmup, parallelism, buffer, tuple(sorted(names)))
