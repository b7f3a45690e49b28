"""Loads the tree's own block table and warm-up, inside a worker process."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.standins import (
    Parallelism,
    StandInFinder,
    buffer_class,
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
        block_table = _import(f"{files.package}.v1.worker.block_table")
        warmup = None
        if files.warmup is not None:
            module = _import(f"{files.package}.v1.worker.gpu.warmup")
            warmup = getattr(module, files.warmup, None)
        names = finder.taken - ({"CpuGpuBuffer"} if own_buffer else set())
        yield Loaded(block_table, warmup, parallelism, buffer, tuple(sorted(names)))


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CannotRunError(f"{name} does not import here: {error}") from error


class NotOnRunnerError(CannotRunError, AttributeError):
    """Still an AttributeError, so that a warm-up may ask whether the runner has something."""


class RunnerStandIn(SimpleNamespace):
    """The model runner as a warm-up sees it: block tables, a device, the input buffers."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOnRunnerError(
            f"the warm-up asks the model runner for `{name}`, which nothing here stands in for"
        )
