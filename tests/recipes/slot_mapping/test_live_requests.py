"""The inserted warm-up on releases' own block tables, while requests are in flight.

Elastic expert parallelism runs the worker's warm-up again on live workers. A warm-up that borrows
row 0 and clears it again, whoever owns it, leaves that request a count of 0: its next block then
takes the place of its first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan
from codemods.engine.planning import make_plan
from codemods.prove.proof import Options
from codemods.release import UnreachableError, fetch
from tests.prove.forked import needs_the_verify_extra
from tests.recipes.slot_mapping.rewritten import subject

pytestmark = [pytest.mark.network, needs_the_verify_extra]

GUARD = b"    if any(group.num_blocks_per_row.any() for group in groups):\n        return\n\n"
RELEASES = ("0.21.0", "0.26.0")
KERNEL = "_compute_slot_mapping_kernel"


class Launched:
    """In the kernel's place: writes each launch down."""

    def __init__(self, launches: list[object]) -> None:
        self.launches = launches

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return lambda *_, **__: self.launches.append(grid)


@pytest.fixture(params=RELEASES)
def plan(request: pytest.FixtureRequest) -> Plan:
    try:
        root = fetch(request.param)
    except UnreachableError as error:
        pytest.skip(str(error))
    return make_plan(Checkout.find(root), registry.chosen(()))


def clearing_the_row(plan: Plan) -> Plan:
    """The plan with a warm-up that looks at no row before it borrows the first one."""
    changes = []
    for change in plan.changes:
        if "warmup" in change.edits:
            assert change.after.count(GUARD) == 1
            change = replace(change, after=change.after.replace(GUARD, b""))
        changes.append(change)
    (one,) = plan.recipes
    return replace(plan, recipes=(replace(one, changes=tuple(changes)),))


@contextmanager
def warmed(plan: Plan, folder: Path, *live: list[int]) -> Iterator[tuple[Any, int]]:
    """Two groups' tables with live rows, after the warm-up, and how often it launched a kernel."""
    from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build
    from codemods.recipes.slot_mapping.proofs.loading import loaded
    from codemods.recipes.slot_mapping.proofs.sides import make_job
    from codemods.recipes.slot_mapping.proofs.warming import choices_of, warm_up

    job = make_job(subject(plan), Options(), folder)
    assert not isinstance(job, str), job
    engine = Engine(((16, 16), (32, 32)), max_num_reqs=4, max_num_tokens=64)
    launches: list[object] = []
    with loaded(job.after) as tree:
        # The tables are at stake here, not the slots: no GPU is needed to see a launch.
        setattr(tree.block_table, KERNEL, Launched(launches))
        tables = build(tree, engine)
        for row, blocks in enumerate(live):
            tables.add_row((blocks, [block + 100 for block in blocks]), row)
        tables.commit_block_table(len(live))
        assert tree.warmup is not None
        inputs = buffers(engine, job.call_sites[0])
        choices = choices_of(tree.warmup, engine)
        warm_up(tree.warmup, tables, inputs, choices, num_reqs=len(live))
        yield tables, len(launches)


def row(table: Any, index: int) -> list[int]:
    count = int(table.num_blocks_per_row[index])
    assert (
        table.block_table.np[index, :count].tolist()
        == table.block_table.gpu[index, :count].tolist()
    )
    return [int(block) for block in table.block_table.np[index, :count]]


def test_an_idle_engine_is_warmed_and_left_empty(plan: Plan, tmp_path: Path) -> None:
    with warmed(plan, tmp_path) as (tables, launches):
        assert launches == 4  # each group's table, with the row in use and cleared
        for table in tables.block_tables:
            assert not table.num_blocks_per_row.any()
            assert not table.block_table.np.any()
            assert not table.block_table.gpu.any()


@pytest.mark.parametrize("live", [([7, 8],), ([7, 8], [9]), ([], [9])], ids=["0", "0 and 1", "1"])
def test_a_live_request_is_not_disturbed(
    live: tuple[list[int], ...], plan: Plan, tmp_path: Path
) -> None:
    with warmed(plan, tmp_path, *live) as (tables, launches):
        first, second = tables.block_tables
        for index, blocks in enumerate(live):
            assert row(first, index) == blocks
            assert row(second, index) == [block + 100 for block in blocks]
        assert launches == 0


def test_a_live_request_goes_on_with_its_next_block(plan: Plan, tmp_path: Path) -> None:
    with warmed(plan, tmp_path, [7, 8]) as (tables, _):
        tables.append_row(([9], [109]), 0)
        tables.commit_block_table(1)
        assert [row(table, 0) for table in tables.block_tables] == [[7, 8, 9], [107, 108, 109]]


def test_a_warm_up_that_clears_the_row_loses_a_live_requests_blocks(
    plan: Plan, tmp_path: Path
) -> None:
    with warmed(clearing_the_row(plan), tmp_path, [7, 8]) as (tables, launches):
        assert launches == 4
        assert [row(table, 0) for table in tables.block_tables] == [[], []]
        tables.append_row(([9], [109]), 0)
        tables.commit_block_table(1)
        assert [row(table, 0) for table in tables.block_tables] == [[9], [109]]
