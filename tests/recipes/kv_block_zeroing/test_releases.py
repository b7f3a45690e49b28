"""Real releases: what is found in each, and what is written.

One for each row of the README's table; in a search every pinned one.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Verdict
from codemods.engine.planning import make_plan
from codemods.release import UnreachableError, fetch
from codemods.release.names import Source
from tests.releases.trees import one_for_each_row

from . import forks

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from pinned import Expectation, Pinned, load

pytestmark = pytest.mark.network

EACH = one_for_each_row(load())


def name_of(pinned: Pinned) -> str:
    return f"{pinned.version}-{pinned.source.value}"


def expected(pinned: Pinned) -> Expectation:
    return next(one for one in pinned.also if one.recipe == forks.RECIPE)


FIXABLE = [one for one in EACH if expected(one).verdict is Verdict.FIXABLE]


@cache
def tree_of(version: str, source: Source) -> forks.Files:
    """The release's files out of the cache or the index; skips only without any network."""
    try:
        root = fetch(version, sdist=source is Source.SDIST)
    except UnreachableError as error:
        pytest.skip(str(error))
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@cache
def plan_of(pinned: Pinned) -> Plan:
    tree_of(pinned.version, pinned.source)
    checkout = Checkout.find(fetch(pinned.version, sdist=pinned.source is Source.SDIST))
    return make_plan(checkout, (registry.get(forks.RECIPE),))


@pytest.mark.parametrize("pinned", EACH, ids=name_of)
def test_verdict_and_edits_are_as_expected(pinned: Pinned) -> None:
    plan = plan_of(pinned)
    found = {one.edit: (one.status, one.reason) for one in plan.outcomes}
    assert found == {one.edit: (one.status, one.reason) for one in expected(pinned).edits}
    assert plan.verdict is expected(pinned).verdict


@pytest.mark.parametrize("pinned", [one for one in EACH if one not in FIXABLE], ids=name_of)
def test_nothing_changes_where_nothing_is_to_be_done(pinned: Pinned) -> None:
    assert plan_of(pinned).changes == ()


@pytest.mark.parametrize("pinned", FIXABLE, ids=name_of)
def test_only_the_expected_files_change_and_no_line_above_the_kernel_moves(pinned: Pinned) -> None:
    tests = ["tests/v1/worker/test_gpu_model_runner.py"] * (pinned.source is Source.SDIST)
    worker = "vllm/v1/worker"
    files = [f"{worker}/gpu/warmup.py", f"{worker}/gpu_worker.py", f"{worker}/utils.py"]
    changes = {change.path: change for change in plan_of(pinned).changes}
    assert sorted(changes) == tests + files
    kernel = changes[files[-1]]
    assert kernel.before.count(b"\n") == kernel.after.count(b"\n")


@pytest.mark.parametrize("pinned", FIXABLE, ids=name_of)
def test_both_runners_are_warmed_up_from_the_release_that_has_two_zeroers(pinned: Pinned) -> None:
    warmup = next(one for one in plan_of(pinned).changes if one.path.endswith("gpu/warmup.py"))
    both = b'("_kv_block_zeroer", "kv_block_zeroer")'
    assert (both in warmup.after) is (pinned.numbers >= (0, 23, 0))


@pytest.mark.parametrize("pinned", FIXABLE, ids=name_of)
def test_a_second_run_changes_nothing_with_slot_mapping_or_without(pinned: Pinned) -> None:
    tree = tree_of(pinned.version, pinned.source)
    alone = forks.rewritten(tree, plan_of(pinned))
    assert forks.planned(alone).verdict is Verdict.ALREADY_FIXED
    both = ("slot-mapping", forks.RECIPE)
    fixed = forks.rewritten(tree, forks.planned(tree, *both))
    again = forks.planned(fixed, *both)
    assert again.changes == ()
    assert again.recipes[1].verdict is Verdict.ALREADY_FIXED


def test_a_release_is_expected_to_end_in_one_way() -> None:
    for pinned in EACH:
        assert [one.recipe for one in pinned.also].count(forks.RECIPE) == 1
