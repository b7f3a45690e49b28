"""The reference that the kernel is measured against, on cases worked out by hand."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from codemods.recipes.slot_mapping.proofs.engines import Engine  # noqa: E402
from codemods.recipes.slot_mapping.proofs.slots import (  # noqa: E402
    LAYOUTS,
    Batch,
    Layout,
    random_batch,
    slots,
)

PAD = -1
PLAIN = Layout(whole_blocks=False, prefill_ranks=False)


def engine(groups: tuple[tuple[int, int], ...] = ((4, 4),), **more: object) -> Engine:
    return Engine(groups, max_num_reqs=4, max_num_tokens=8, **more)  # type: ignore[arg-type]


def batch(starts: list[int], positions: list[int], *blocks: list[int]) -> Batch:
    return Batch(np.array(starts), np.array(positions), (tuple(map(np.array, blocks)),))


def test_a_token_goes_to_its_place_in_its_block() -> None:
    found = slots(engine(), 0, batch([0, 3], [3, 4, 5], [7, 2]), PLAIN, PAD)
    assert found.tolist() == [7 * 4 + 3, 2 * 4, 2 * 4 + 1, PAD, PAD, PAD, PAD, PAD]


def test_requests_have_blocks_of_their_own() -> None:
    found = slots(engine(), 0, batch([0, 1, 1, 2], [0, 0], [5], [], [6]), PLAIN, PAD)
    assert found.tolist()[:3] == [20, 24, PAD]


def test_a_cache_block_is_split_for_the_kernel() -> None:
    found = slots(engine(((4, 2),)), 0, batch([0, 4], [0, 1, 2, 3], [3]), PLAIN, PAD)
    assert found.tolist()[:4] == [12, 13, 14, 15]


@pytest.mark.parametrize(("rank", "expected"), [(0, [8, PAD, 9, PAD]), (1, [PAD, 8, PAD, 9])])
def test_ranks_store_turn_by_turn(rank: int, expected: list[int]) -> None:
    found = slots(engine(dcp=(2, rank)), 0, batch([0, 4], [0, 1, 2, 3], [2]), PLAIN, PAD)
    assert found.tolist()[:4] == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_alone_every_layout_is_the_same(layout: Layout) -> None:
    one = batch([0, 3], [3, 4, 5], [7, 2])
    assert (
        slots(engine(), 0, one, layout, PAD).tolist()
        == slots(engine(), 0, one, PLAIN, PAD).tolist()
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_token_is_stored_by_one_rank_alone(layout: Layout) -> None:
    random = np.random.default_rng(0)
    made = random_batch(engine(dcp=(2, 0)), 8, random)
    stored = [slots(engine(dcp=(2, rank)), 0, made, layout, PAD) != PAD for rank in (0, 1)]
    tokens = int(made.query_start_loc[-1])
    assert (stored[0][:tokens] != stored[1][:tokens]).all()
    assert not (stored[0][tokens:] | stored[1][tokens:]).any()
