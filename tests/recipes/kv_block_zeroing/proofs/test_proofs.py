"""The proofs hold on a fixed tree, and each fails on a tree that is wrong in its way."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Verdict
from codemods.engine.planning import make_plan
from codemods.prove import proof_process, rows
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from tests.prove.forked import run_worker

from .. import forks

UTILS = "vllm/v1/worker/utils.py"
WARMUP = "vllm/v1/worker/gpu/warmup.py"
OPTIONS = Options(targets=("cuda:90", "hip:gfx942"))


@pytest.fixture(autouse=True)
def in_a_fork(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child, which is quicker; one test has processes of their own, as a user has.

    The child imports Triton itself, with its interpreter or without.
    """
    pytest.importorskip("torch")
    if find_spec("triton") is None:
        pytest.skip("needs the verify extra")
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
    names = ("order", "keys", "compile", "result", "state")
    found = proofs(forks.fork(HELD[0]).files, *names)
    assert {one: found[one].status for one in names} == dict.fromkeys(names, ProofStatus.PASS), (
        found
    )


@pytest.mark.parametrize("name", HELD)
def test_every_proof_holds(name: str) -> None:
    names = ("order", "keys", "result", "state")
    found = proofs(forks.fork(name).files, *names)
    assert {one: found[one].status for one in names} == dict.fromkeys(names, ProofStatus.PASS), (
        found
    )
    assert (found["keys"].figures["keys_before"], found["keys"].figures["keys_after"]) == (3, 1)


def fixed() -> forks.Files:
    files = forks.fork("00-both-runners").files
    return forks.rewritten(files, forks.planned(files))


def changed(name: str, old: str, new: str) -> forks.Files:
    files = fixed()
    assert files[name].count(old.encode()) == 1
    return {**files, name: files[name].replace(old.encode(), new.encode())}


# The proof that must fail, the file, what is changed in the fixed tree, and words of the row.
WRONG = {
    "a count that is specialised": (
        "keys",
        UTILS,
        'do_not_specialize=["n_blocks"]',
        'do_not_specialize=["n_blocks"[:0]]',
        "keys: n_blocks",
    ),
    "a warm-up of an unaligned buffer": (
        "keys",
        WARMUP,
        "zeroer.zero_block_ids([0])",
        "zeroer._ids = zeroer._ids[1:]; zeroer.zero_block_ids([0]); del zeroer._ids",
        "",
    ),
    "a store beside the block": (
        "result",
        UTILS,
        "tl.store(start + page",
        "tl.store(start + 1 + page",
        "elements differ",
    ),
    "a block that is not the null block": (
        "state",
        WARMUP,
        "zero_block_ids([0])",
        "zero_block_ids([1])",
        "elements of layer 0 that it may not",
    ),
    "two launches": (
        "state",
        WARMUP,
        "zeroer.zero_block_ids([0])",
        "zeroer.zero_block_ids([0]); zeroer.zero_block_ids([0])",
        "launches 2 kernels and not 1",
    ),
    "a launch without KV blocks": (
        "state",
        WARMUP,
        "num_blocks > 0",
        "num_blocks >= 0",
        "with no KV blocks",
    ),
    "a random state that moves": (
        "state",
        WARMUP,
        "zeroer.zero_block_ids([0])",
        "zeroer.zero_block_ids([0]); torch.rand(1)",
        "random state",
    ),
    "writes outside inference mode": (
        "state",
        WARMUP,
        f"@torch.inference_mode()\ndef {FUNCTION}",
        f"def {FUNCTION}",
        "inference tensor",
    ),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_proof_fails_where_the_tree_is_wrong(wrong: str) -> None:
    proof, name, old, new, words = WRONG[wrong]
    found = proofs(changed(name, old, new), proof)[proof]
    assert found.status is ProofStatus.FAIL, found
    assert words in found.detail


# The faults above that `check` sees without running the tree; the rest take a run.
SEEN = ("a count that is specialised",)


@pytest.mark.parametrize("wrong", list(WRONG))
def test_check_calls_no_fault_fixed_that_it_can_see(wrong: str) -> None:
    _, name, old, new, _ = WRONG[wrong]
    plan = forks.planned(changed(name, old, new))
    assert (plan.verdict is not Verdict.ALREADY_FIXED) == (wrong in SEEN), plan.outcomes


def test_a_zeroer_that_asks_for_more_is_skipped_and_says_so() -> None:
    files = forks.fork("00-both-runners").files
    files = {**files, UTILS: files[UTILS].replace(b"device: torch.device,", b"device, pool,", 1)}
    found = proofs(files, "result")["result"]
    assert found.status is ProofStatus.SKIPPED
    assert "asks for `pool`" in found.detail


def test_nothing_is_proved_of_a_tree_without_the_kernel() -> None:
    assert proofs(forks.fork("00-no-zeroer").files, "order", "keys", "result") == {}
