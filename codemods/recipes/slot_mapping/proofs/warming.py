"""Runs the tree's warm-up on an engine's tables, as an engine with a GPU would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from codemods.prove.unknown import Choices
from codemods.recipes.slot_mapping.proofs.engines import (
    Buffers,
    Engine,
    known_values,
    on_the_device,
    runner,
)
from codemods.recipes.slot_mapping.proofs.loading import Function

if TYPE_CHECKING:
    from codemods.prove.pretended_gpu import PretendedGpu


def choices_of(warmup: Function, engine: Engine) -> Choices:
    """What a warm-up may ask about the engine, with nothing answered yet."""
    return Choices(known=known_values(engine), maybe_none=frozenset(warmup.facts.maybe_none))


@contextmanager
def as_on_a_gpu(tables: Any, inputs: Buffers, choices: Choices) -> Iterator[PretendedGpu]:
    """Inside, the engine's tensors are taken to be on a GPU."""
    from codemods.prove.pretended_gpu import pretending

    with pretending(on_the_device(tables, inputs), choices) as gpu:
        yield gpu


def warm_up(
    warmup: Function,
    tables: Any,
    inputs: Buffers,
    choices: Choices,
    *,
    device: Any = None,
    num_reqs: int = 0,
) -> None:
    """Call the warm-up; `num_reqs` requests are in the runner's batch."""
    with warmup.asking(choices):
        warmup.call(runner(warmup, tables, inputs, choices, device=device, num_reqs=num_reqs))
