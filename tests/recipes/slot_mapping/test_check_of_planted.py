"""What `check` says of the planted faults and of right fixes written otherwise; it runs nothing.

No fault that a proof catches may be called fixed. `check_of_planted.toml` lists what is wrong only
as a rewrite: of the tree by itself, `verify` finds no fault either. A right fix is called fixed, or
refused for the reason given there; never is a second warm-up put beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Verdict
from codemods.engine.planning import make_plan
from tests.forks import trees
from tests.forks.profiles import FRESH
from tests.recipes.slot_mapping.proofs.planted import Entry, entries, planted, root

pytestmark = pytest.mark.network

LISTED = trees.read_toml(Path(__file__).with_name("check_of_planted.toml"))
WRONG_AS_A_REWRITE = {n: one["why"] for one in LISTED["wrong_as_a_rewrite"] for n in one["names"]}
REFUSED = {name: one["why"] for one in LISTED["refused"] for name in one["names"]}


def cases(*, right: bool) -> Iterator[object]:
    """Each entry in its first tree, mostly the small one; in a search, in all of them."""
    for entry in entries():
        for tree in entry.trees if FRESH else entry.trees[:1]:
            if right is (entry.row is None):
                yield pytest.param(entry, tree, id=f"{entry.name}-{tree}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trees")


def plan_of(entry: Entry, tree: str, folder: Path) -> Plan:
    after = planted(entry, Checkout.find(root(tree, folder))).after.checkout
    return make_plan(after, [registry.get("slot-mapping")])


@pytest.mark.parametrize(("entry", "tree"), list(cases(right=False)))
def test_a_planted_fault_is_not_called_fixed(entry: Entry, tree: str, folder: Path) -> None:
    plan = plan_of(entry, tree, folder)
    shown = [outcome.detail for outcome in plan.outcomes]
    assert (plan.verdict is Verdict.ALREADY_FIXED) == (entry.name in WRONG_AS_A_REWRITE), shown


@pytest.mark.parametrize(("entry", "tree"), list(cases(right=True)))
def test_a_right_fix_is_never_doubled(entry: Entry, tree: str, folder: Path) -> None:
    plan = plan_of(entry, tree, folder)
    expected = Verdict.REFUSED if entry.name in REFUSED else Verdict.ALREADY_FIXED
    assert (plan.verdict, plan.changes) == (expected, ()), [o.detail for o in plan.outcomes]


def test_only_entries_of_the_catalogue_are_listed() -> None:
    rows = {entry.name: entry.row for entry in entries()}
    assert {name for name in WRONG_AS_A_REWRITE if rows.get(name)} == WRONG_AS_A_REWRITE.keys()
    assert {name for name in REFUSED if rows[name] is None} == REFUSED.keys()
