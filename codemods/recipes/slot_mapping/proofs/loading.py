"""Loads the tree's own block table and warm-up, inside a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.standins import (
    Parallelism,
    Platform,
    StandInFinder,
    asking,
    buffer_class,
    imported,
    installed,
    known_names,
)
from codemods.prove.unknown import Choices
from codemods.recipes.slot_mapping.proofs.job import SideFiles, WarmupCall


@dataclass(frozen=True)
class Function:
    """The tree's warm-up, ready to be called, and what is known of its call."""

    call: Callable[[Any], object]
    facts: WarmupCall
    module: ModuleType
    finder: StandInFinder

    @contextmanager
    def asking(self, choices: Choices) -> Iterator[None]:
        """Inside, what the warm-up asks about its engine is asked of `choices`."""
        with asking(self.finder, self.module, choices):
            yield


@dataclass(frozen=True)
class Loaded:
    """The tree's modules of one side, with what was stood in for."""

    block_table: ModuleType
    warmup: Function | None
    parallelism: Parallelism
    platform: Platform
    buffer: type[Any]
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
    parallelism = Parallelism()
    buffer, own_buffer = buffer_class(files.buffer_source)
    known = known_names(parallelism, files.pad_slot_id, buffer)
    finder = StandInFinder(
        package=files.package,
        own={name: Path(path) for name, path in files.modules.items()},
        known=known,
        spare=frozenset(files.spare),
    )
    with installed(finder):
        block_table = imported(f"{files.package}.v1.worker.block_table")
        warmup = None if files.warmup is None else _function(files.warmup, finder)
        names = finder.taken - ({"CpuGpuBuffer"} if own_buffer else set())
        platform = known["current_platform"]
        assert isinstance(platform, Platform)
        yield Loaded(block_table, warmup, parallelism, platform, buffer, tuple(sorted(names)))


def _function(warmup: WarmupCall, finder: StandInFinder) -> Function:
    module = imported(warmup.module)
    call = getattr(module, warmup.function, None)
    if call is None:
        raise CannotRunError(f"{warmup.module} has no {warmup.function} once it is imported")
    return Function(call, warmup, module, finder)
