"""Each planted fault is caught by the row that must catch it, and no row stops a right fix.

A quarter of the entries, each in one tree; in a search every entry in every tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.prove import proof_process
from codemods.prove.proof import Options, Proof, ProofStatus, Row
from codemods.prove.rows import OF_EVERY_PLAN
from codemods.recipes.slot_mapping.proofs import PROOFS
from tests.forks.profiles import FRESH, part_of
from tests.prove.forked import needs_the_verify_extra, run_worker
from tests.recipes.slot_mapping.proofs.planted import RELEASES, Entry, entries, planted, root

pytestmark = [pytest.mark.network, needs_the_verify_extra]

OPTIONS = Options(targets=("cuda:90", "hip:gfx942"), timeout=120, max_num_tokens=40)
OF_THE_RIGHT = ("order", "keys", "state", "result")
ROWS = {row.name: row for row in (*OF_EVERY_PLAN, *PROOFS)}


def cases() -> Iterator[tuple[Entry, str]]:
    """Each entry in its first tree, mostly the small one; in a search, in all of them."""
    for entry in entries():
        for tree in entry.trees if FRESH else entry.trees[:1]:
            yield entry, tree


def named(entry: Entry, tree: str) -> object:
    return pytest.param(entry, tree, id=f"{entry.name}-{tree}")


WRONG = part_of([named(*case) for case in cases() if case[0].row])
RIGHT = part_of([named(*case) for case in cases() if not case[0].row])


@pytest.fixture(autouse=True)
def in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs run in a child that has torch already."""
    monkeypatch.setattr(proof_process, "run_worker", run_worker)


def prove(row: Row, entry: Entry, tree: str, folder: Path) -> Proof:
    return row.prove(planted(entry, Checkout.find(root(tree, folder))), OPTIONS)


def of_a(tree: str) -> tuple[str, ...]:
    """The rows that a right fix must pass; `imports` needs the whole of a tree."""
    return OF_THE_RIGHT if tree in RELEASES else ("imports", *OF_THE_RIGHT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trees")


@pytest.mark.parametrize(("entry", "tree"), WRONG)
def test_a_planted_fault_is_caught(entry: Entry, tree: str, folder: Path) -> None:
    assert entry.row is not None
    found = prove(ROWS[entry.row], entry, tree, folder)
    assert found.status is ProofStatus.FAIL, found
    assert "codemods/" not in found.detail


@pytest.mark.parametrize(("entry", "tree"), RIGHT)
def test_a_right_fix_written_otherwise_is_accepted(entry: Entry, tree: str, folder: Path) -> None:
    found = [prove(ROWS[name], entry, tree, folder) for name in of_a(tree)]
    assert [row for row in found if row.status is not ProofStatus.PASS] == []


def test_the_catalogue_is_large_enough() -> None:
    assert sum(1 for entry in entries() if entry.row) >= 60
    assert sum(1 for entry in entries() if not entry.row) >= 25
    assert len({entry.name for entry in entries()}) == len(entries())
    assert {entry.row for entry in entries()} - {None} <= ROWS.keys()
