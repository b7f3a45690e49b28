"""Proof 7, in a process of its own: the real warm-up leaves the real block tables as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.random_states import moved, random_states
from codemods.prove.triton_binder import Launch, observed
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build, runner, supported
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.workers import serve

NAME = "state"
ROWS = 6
small_engine = partial(Engine, max_model_len=4096, max_num_reqs=ROWS, max_num_tokens=64)
ENGINES = (
    small_engine(((16, 16),)),
    small_engine(((32, 16), (64, 64))),
    small_engine(((528, 16), (16, 16)), dcp=(2, 1)),
)
# Which rows live requests own, and whether rows were used and given back before.
SITUATIONS = (
    ("no row in use", (), False),
    ("no row in use any more", (), True),
    ("row 0 in use", (0,), False),
    ("some rows in use but not row 0", (2, 5), True),
    ("all rows in use", tuple(range(ROWS)), False),
)


class LaunchFailedError(RuntimeError):
    """What a launch raises when the proof wants it to."""


@dataclass(frozen=True)
class Snapshot:
    """All that must survive: each table's counts, host and device cells, and the random states."""

    counts: tuple[Any, ...]
    host: tuple[Any, ...]
    device: tuple[Any, ...]
    pointers: tuple[int, ...]
    random: tuple[object, ...]


def prove(job: Job) -> Proof:
    if job.after.warmup is None:
        raise CannotRunError("the tree has no warm-up of ours to run")
    figures: dict[str, int | float | str] = {"engines": len(ENGINES), "runs": 0, "launches": 0}
    with loaded(job.after) as tree:
        on_device = [replace(engine, device=job.device) for engine in ENGINES]
        for engine in (engine for engine in on_device if supported(tree, engine)):
            for told, live, used in SITUATIONS:
                for raises in (False, True):
                    changed, launches = _run(tree, engine, live, used, raises, job.call_sites[0])
                    figures["runs"] = int(figures["runs"]) + 1
                    figures["launches"] = int(figures["launches"]) + launches
                    if changed is not None:
                        when = ", the launch raising" if raises else ""
                        return failed(
                            NAME, f"with {told}{when}, the warm-up {changed} ({engine})", **figures
                        )
    if not figures["launches"]:
        return failed(NAME, "the warm-up launched no kernel on an idle engine", **figures)
    return passed(
        NAME,
        "tables, row counts and random state are as before the warm-up, with no, some and all rows "
        "in use, also when the launch raises",
        **figures,
    )


def _run(
    tree: Loaded, engine: Engine, live: tuple[int, ...], used: bool, raises: bool, site: CallSite
) -> tuple[str | None, int]:
    """Run the warm-up once; what it changed, None for nothing, and how often it launched."""
    tables = build(tree, engine)
    _fill(tables, engine, live, used)
    launches: list[Launch] = []

    def on_launch(launch: Launch) -> None:
        launches.append(launch)
        if raises:
            raise LaunchFailedError("the launch fails, as the proof asked")

    before = snapshot(tables)
    assert tree.warmup is not None
    with observed(on_launch), suppress(LaunchFailedError):
        tree.warmup(runner(tree, tables, buffers(engine, site)))
    return next(differences(before, snapshot(tables)), None), len(launches)


def _fill(tables: Any, engine: Engine, live: tuple[int, ...], used: bool) -> None:
    """Give rows blocks of their own; one block of row 0 is on the host only, as between steps."""

    def ids(row: int, count: int) -> tuple[list[int], ...]:
        return tuple([1000 * row + 10 * n + 7 for n in range(count)] for _ in engine.groups)

    if used:
        for row in range(ROWS):
            tables.add_row(ids(row + 50, 1), row)
        tables.commit_block_table(ROWS)
        for row in range(ROWS):
            tables.clear_row(row)
    for row in live:
        tables.add_row(ids(row + 1, 1), row)
    if live:
        tables.commit_block_table(ROWS)
        for table in tables.block_tables:
            if table.num_blocks_per_row[live[0]] < table.block_table.np.shape[1]:
                table.append_row([907], live[0])


def snapshot(tables: Any) -> Snapshot:
    groups = tables.block_tables
    return Snapshot(
        counts=tuple(np.array(table.num_blocks_per_row, copy=True) for table in groups),
        host=tuple(table.block_table.cpu.numpy().copy() for table in groups),
        device=tuple(table.block_table.gpu.cpu().numpy().copy() for table in groups),
        pointers=tuple(
            buffer.data_ptr()
            for table in groups
            for buffer in (table.block_table.cpu, table.block_table.gpu, table.slot_mapping.gpu)
        ),
        random=random_states(groups[0].block_table.gpu.device),
    )


def differences(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """What a run changed, each as the end of a sentence.

    A cell beyond its row's count belongs to no request; it may be set to 0, the null block.
    """
    if before.pointers != after.pointers:
        yield "replaced a buffer that CUDA graphs point to"
    for group, (old, new) in enumerate(zip(before.counts, after.counts, strict=True)):
        for row in np.flatnonzero(old != new):
            yield f"changes the block count of row {row}, group {group}: {old[row]} to {new[row]}"
    for place in ("host", "device"):
        both = zip(getattr(before, place), getattr(after, place), before.counts, strict=True)
        for group, (old, new, counts) in enumerate(both):
            owned = np.arange(old.shape[1])[None, :] < np.asarray(counts)[:, None]
            for row, column in np.argwhere((old != new) & (owned | (new != 0))):
                yield (
                    f"changes block {column} of row {row}, group {group}, on the {place}: "
                    f"{old[row, column]} to {new[row, column]}"
                )
    yield from moved(before.random, after.random)


if __name__ == "__main__":
    serve(NAME, prove)
