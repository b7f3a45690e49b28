"""The proofs hold on fixed trees; what is wrong with others they say in test_planted.py."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.prove import proof_process, rows
from codemods.prove.proof import Options, Proof, ProofStatus
from tests.forks.profiles import FRESH
from tests.prove.forked import needs_the_verify_extra, run_worker

from .. import forks

UTILS = "vllm/v1/worker/utils.py"
OPTIONS = Options(targets=("cuda:90",))

pytestmark = needs_the_verify_extra


@pytest.fixture(autouse=True)
def in_a_fork(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child, which is quicker; one test has processes of their own, as a user has."""
    if request.function is not test_every_proof_holds_in_a_process_of_its_own:
        monkeypatch.setattr(proof_process, "run_worker", run_worker)


def proofs(files: forks.Files, *names: str) -> dict[str, Proof]:
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout.find(forks.write(files, Path(folder)))
        plan = make_plan(checkout, (registry.get(forks.RECIPE),))
        return {
            row.name: row.prove(subject, OPTIONS)
            for subject, row in rows.rows(plan, checkout, OPTIONS)
            if row.name in names
        }


HELD = ("00-both-runners", "00-list-of-caches", "06-kernel-imported", "06-zeroer-inherits")


def test_every_proof_holds_in_a_process_of_its_own() -> None:
    hold(HELD[0], "order", "keys", "compile", "result", "state")


@pytest.mark.parametrize("name", HELD if FRESH else HELD[1:])
def test_every_proof_holds(name: str) -> None:
    """`result`, by far the slowest, is asked of one fork above; in a search of each."""
    hold(name, "order", "keys", "state", *(["result"] if FRESH else []))


def hold(name: str, *names: str) -> None:
    found = proofs(forks.fork(name).files, *names)
    assert {one: found[one].status for one in names} == dict.fromkeys(names, ProofStatus.PASS), (
        found
    )
    assert (found["keys"].figures["keys_before"], found["keys"].figures["keys_after"]) == (3, 1)


def test_a_zeroer_that_asks_for_more_is_skipped_and_says_so() -> None:
    files = forks.fork("00-both-runners").files
    files = {**files, UTILS: files[UTILS].replace(b"device: torch.device,", b"device, pool,", 1)}
    found = proofs(files, "result")["result"]
    assert found.status is ProofStatus.SKIPPED
    assert "asks for `pool`" in found.detail


def test_nothing_is_proved_of_a_tree_without_the_kernel() -> None:
    assert proofs(forks.fork("00-no-zeroer").files, "order", "keys", "result") == {}
