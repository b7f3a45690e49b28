"""The `result` proof, in its own process: the kernel gives the right slots.

Run by Triton's interpreter, or by a GPU where the job names one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.triton_binder import Launch, observed
from codemods.recipes.slot_mapping.proofs.engines import (
    Engine,
    buffers,
    build,
    capacity,
    slot_mapping,
    supported,
)
from codemods.recipes.slot_mapping.proofs.job import Job, SideFiles
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.proof_process import serve
from codemods.recipes.slot_mapping.proofs.slots import LAYOUTS, Batch, random_batch, slots

NAME = "result"
SEED = 20260521
BATCHES = 3
small_engine = partial(Engine, max_model_len=2048, max_num_reqs=5, max_num_tokens=300)
# A value no slot has, to show that every place of the mapping is written.
UNWRITTEN = -(2**40)


def result_engines() -> Iterator[Engine]:
    """Small engines: single and hybrid groups, ranks of both kinds, interleave sizes."""
    for size in (1, 16, 48, 128):
        yield small_engine(((size, size),))
    yield Engine(((16, 16),), max_model_len=4096, max_num_reqs=2, max_num_tokens=2100)
    yield small_engine(((16, 16), (48, 48)))
    for groups in (((32, 16), (64, 64)), ((528, 16), (16, 16))):
        yield small_engine(groups)
        yield small_engine(groups, dcp=(2, 1))
    for world, rank, interleave in ((2, 0, 1), (2, 1, 16), (4, 3, 4)):
        yield small_engine(((64, 64),), dcp=(world, rank), interleave=interleave)
    yield small_engine(((16, 16),), pcp=(2, 1))
    yield small_engine(((16, 16),), pcp=(2, 0), dcp=(2, 1), interleave=2)


@dataclass(frozen=True)
class Case:
    """One batch of one engine, and the slot mapping of each group that the tree computed."""

    engine: Engine
    batch: Batch
    mappings: tuple[Any, ...]


def prove(job: Job) -> Proof:
    figures: dict[str, int | float | str] = {}
    before = None if job.before is None else _cases(job.before, job.device)
    after = _cases(job.after, job.device)
    before = after if before is None else before
    figures["engines"] = len({case.engine for case in after})
    figures["batches"] = len(after)
    figures["tokens"] = sum(len(case.batch.positions) for case in after)
    for old, new in zip(before, after, strict=True):
        for group, (one, other) in enumerate(zip(old.mappings, new.mappings, strict=True)):
            if not np.array_equal(one, other):
                return failed(
                    NAME, f"after is not as before: {_first(new, group, one, other)}", **figures
                )
    complaints = [_complaint(after, layout, job.after.pad_slot_id) for layout in LAYOUTS]
    if None not in complaints:
        return failed(NAME, f"not the slots of the reference: {complaints[-1]}", **figures)
    same = "the same before and after, and " if job.before is not None else ""
    return passed(NAME, f"slots are {same}those of the NumPy reference, bit for bit", **figures)


def _cases(files: SideFiles, device: str) -> list[Case]:
    launches: list[Launch] = []
    with loaded(files) as tree, observed(launches.append):
        cases = [
            case
            for engine in result_engines()
            if supported(tree, engine)
            for case in _run(tree, replace(engine, device=device))
        ]
    if not launches:
        raise CannotRunError("compute_slot_mapping launches no Triton kernel in this tree")
    return cases


def _run(tree: Loaded, engine: Engine) -> Iterator[Case]:
    """Several batches on one engine's tables: a tree may take another path the second time."""
    import torch

    from codemods.recipes.slot_mapping.proofs.call_site import DOCUMENTED

    random = np.random.default_rng(SEED)
    tables, inputs = build(tree, engine), buffers(engine, DOCUMENTED)
    for table in tables.block_tables:
        slot_mapping(table).fill_(UNWRITTEN)
    for _ in range(BATCHES):
        batch = random_batch(engine, capacity(tables, engine), random)
        for row in range(batch.num_reqs):
            tables.add_row(tuple([int(i) for i in ids[row]] for ids in batch.block_ids), row)
        tables.commit_block_table(batch.num_reqs)
        inputs.query_start_loc[: batch.num_reqs + 1] = torch.from_numpy(batch.query_start_loc)
        inputs.positions[: len(batch.positions)] = torch.from_numpy(batch.positions)
        inputs.call(tables, batch.num_reqs, len(batch.positions))
        yield Case(
            engine,
            batch,
            tuple(slot_mapping(table).cpu().numpy().copy() for table in tables.block_tables),
        )
        for row in range(batch.num_reqs):
            tables.clear_row(row)


def _complaint(cases: list[Case], layout: Any, pad: int) -> str | None:
    """The first place where the tree and a layout of the reference differ."""
    for case in cases:
        for group, mapping in enumerate(case.mappings):
            expected = slots(case.engine, group, case.batch, layout, pad)
            if not np.array_equal(expected, mapping):
                return _first(case, group, expected, mapping)
    return None


def _first(case: Case, group: int, expected: Any, got: Any) -> str:
    place = int(np.flatnonzero(expected != got)[0])
    return (
        f"token {place} of group {group} ({case.engine}) goes to slot {got[place]}, "
        f"not {expected[place]}"
    )


if __name__ == "__main__":
    serve(NAME, prove)
