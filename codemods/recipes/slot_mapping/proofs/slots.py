"""Which slot each token goes to, in NumPy: the reference the kernel is measured against.

A request's tokens fill its cache blocks in order. Under context parallelism a block's span is as
many tokens on each rank, handed out `interleave` at a time, and a rank stores its own only; what it
does not store, and what pads the batch, gets the padding slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from codemods.recipes.slot_mapping.proofs.engines import Engine


@dataclass(frozen=True)
class Layout:
    """The two things in which releases differ where ranks share the cache.

    `whole_blocks`: ranks share out cache blocks (0.26.0 and later), not the attention kernel's
    smaller ones. `prefill_ranks`: the prefill context-parallel ranks share too (before 0.26.0).
    """

    whole_blocks: bool
    prefill_ranks: bool


LAYOUTS = tuple(Layout(*flags) for flags in product((False, True), repeat=2))


@dataclass(frozen=True)
class Batch:
    """One batch: `query_start_loc` of requests + 1, and a position for each token.

    `block_ids[group][row]` are the request's cache blocks, before any split for the kernel.
    """

    query_start_loc: Any
    positions: Any
    block_ids: tuple[tuple[Any, ...], ...]

    @property
    def num_reqs(self) -> int:
        return len(self.query_start_loc) - 1


def random_batch(engine: Engine, longest: int, random: np.random.Generator) -> Batch:
    """Requests of random lengths, none of more than `longest` tokens and one that runs none."""
    num_reqs = int(random.integers(1, engine.max_num_reqs + 1))
    room = min(engine.max_num_tokens // num_reqs, longest)
    lengths = random.integers(1, max(room, 1) + 1, num_reqs)
    if num_reqs > 2:
        lengths[int(random.integers(num_reqs))] = 0
    starts = [int(random.integers(longest - length + 1)) for length in lengths]
    positions = [
        np.arange(start, start + length) for start, length in zip(starts, lengths, strict=True)
    ]
    share = engine.dcp[0] if engine.dcp else 1
    block_ids = tuple(
        tuple(
            random.integers(1, 100_000, -(int(start + length) // -(size * share)))
            for start, length in zip(starts, lengths, strict=True)
        )
        for size, _ in engine.groups
    )
    query_start_loc = np.concatenate([[0], np.cumsum(lengths)])
    return Batch(query_start_loc, np.concatenate(positions), block_ids)


def slots(engine: Engine, group: int, batch: Batch, layout: Layout, pad: int) -> Any:
    """The slot mapping of one KV cache group: `max_num_tokens` of int64."""
    size, kernel_size = engine.groups[group]
    world, rank = _share(engine, layout)
    span = size if layout.whole_blocks else kernel_size
    split = size // kernel_size
    mapping = np.full(engine.max_num_tokens, pad, dtype=np.int64)
    for row in range(batch.num_reqs):
        start, end = batch.query_start_loc[row], batch.query_start_loc[row + 1]
        for token in range(start, end):
            span_index, offset = divmod(int(batch.positions[token]), span * world)
            turn, within = divmod(offset, engine.interleave)
            if turn % world != rank:
                continue
            stored = turn // world * engine.interleave + within
            block, place = divmod(span_index * span + stored, kernel_size)
            kernel_block = int(batch.block_ids[group][row][block // split]) * split + block % split
            mapping[token] = kernel_block * kernel_size + place
    return mapping


def _share(engine: Engine, layout: Layout) -> tuple[int, int]:
    """How many ranks share the cache, and which one this is."""
    world, rank = engine.dcp or (1, 0)
    if layout.prefill_ranks and engine.pcp is not None:
        return engine.pcp[0] * world, engine.pcp[1] * world + rank
    return world, rank
