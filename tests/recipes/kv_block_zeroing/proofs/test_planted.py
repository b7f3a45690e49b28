"""Each planted fault is caught by the row that must catch it, and no row stops a right fix.

A quarter of the entries, each in one tree; in a search every entry in every tree. What `check` says
is asked of every entry, since it runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Verdict
from codemods.engine.planning import make_plan
from codemods.prove import proof_process
from codemods.prove.proof import Options, ProofStatus
from codemods.prove.subject import Subject
from codemods.recipes.kv_block_zeroing.proofs import PROOFS
from tests.forks import trees
from tests.forks.profiles import FRESH, part_of
from tests.prove.forked import needs_the_verify_extra, run_worker
from tests.recipes.planting import release_tree, replaced, spoiled

from .. import forks

pytestmark = [pytest.mark.network, needs_the_verify_extra]

OPTIONS = Options(targets=("cuda:90", "hip:gfx942"), timeout=120)
ROWS = {row.name: row for row in PROOFS}
OF_THE_RIGHT = ("order", "keys", "result", "state")
TREES = ("fork", "0.21.0", "0.24.0", "0.26.0")
FILES = {
    "kernel": "v1/worker/utils.py",
    "warmup": "v1/worker/gpu/warmup.py",
    "worker": "v1/worker/gpu_worker.py",
}
ENTRIES = trees.read_toml(Path(__file__).with_name("planted.toml"))["entry"]
Entry = dict[str, Any]


def cases(*, right: bool) -> Iterator[object]:
    for entry in ENTRIES:
        found = entry.get("trees", TREES)
        for tree in found if FRESH else found[:1]:
            if right is ("row" not in entry):
                yield pytest.param(entry, tree, id=f"{entry['name']}-{tree}")


@pytest.fixture(autouse=True)
def in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs run in a child that has torch already."""
    monkeypatch.setattr(proof_process, "run_worker", run_worker)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tree")


@cache
def checkout(tree: str, folder: Path) -> Checkout:
    if tree != "fork":
        return Checkout.find(release_tree(tree))
    return Checkout.find(forks.write(forks.fork("00-both-runners").files, folder))


def planted(entry: Entry, tree: str, folder: Path) -> Subject:
    spoils = [
        (FILES[one["file"]], one["file"], lambda text, one=one: replaced(text, one))
        for one in entry["change"]
    ]
    return spoiled(forks.RECIPE, checkout(tree, folder), spoils)


@pytest.mark.parametrize(("entry", "tree"), part_of([*cases(right=False)]))
def test_a_planted_fault_is_caught(entry: Entry, tree: str, folder: Path) -> None:
    found = ROWS[entry["row"]].prove(planted(entry, tree, folder), OPTIONS)
    assert found.status is ProofStatus.FAIL, found
    assert "codemods/" not in found.detail


@pytest.mark.parametrize(("entry", "tree"), part_of([*cases(right=True)]))
def test_a_right_fix_written_otherwise_is_accepted(entry: Entry, tree: str, folder: Path) -> None:
    subject = planted(entry, tree, folder)
    found = [ROWS[name].prove(subject, OPTIONS) for name in OF_THE_RIGHT]
    assert [row for row in found if row.status is not ProofStatus.PASS] == []


@pytest.mark.parametrize(("entry", "tree"), [*cases(right=False), *cases(right=True)])
def test_check_calls_no_fault_fixed_that_it_can_see(entry: Entry, tree: str, folder: Path) -> None:
    after = planted(entry, tree, folder).after.checkout
    plan = make_plan(after, [registry.get(forks.RECIPE)])
    assert (plan.verdict is Verdict.ALREADY_FIXED) != entry.get("seen", False), plan.outcomes
