"""Proofs that run code of the tree: each holds on a right rewrite and fails on a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.plan import Plan
from codemods.prove import proof_process
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.recipes.slot_mapping.proofs import PROOFS
from tests.forks.profiles import part_of
from tests.prove.forked import needs_the_verify_extra, run_worker
from tests.recipes.slot_mapping.rewritten import KERNEL, plan, standing, subject, swap

pytestmark = needs_the_verify_extra

ONE_TARGET = Options(targets=("cuda:90",), timeout=120, max_num_tokens=40)


# These run in a process of their own, as for a user; the rest in a forked child, which is quicker.
OWN_PROCESS = (
    "test_a_right_rewrite_is_proved",
    "test_a_tree_that_never_ends_is_stopped",
    "test_a_tree_that_ends_the_process_is_reported",
    "test_a_warm_up_that_wants_what_the_runner_does_not_have_fails",
    "test_without_a_gpu_what_needs_one_is_skipped",
)


@pytest.fixture(autouse=True)
def in_a_fork(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.function.__name__ not in OWN_PROCESS:
        monkeypatch.setattr(proof_process, "run_worker", run_worker)


def run(name: str, made: Plan, options: Options = ONE_TARGET) -> Proof:
    """The row, from a process that leaves every file of the tree alone."""
    before = _files(made.tree.root)
    (listed,) = (row for row in PROOFS if row.name == name)
    row = listed.prove(subject(made), options)
    assert _files(made.tree.root) == before
    return row


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["compile", "result", "state"])
def test_a_right_rewrite_is_proved(name: str, tmp_path: Path) -> None:
    row = run(name, plan(tmp_path))
    assert row.status is ProofStatus.PASS, row
    assert row.name == name


def test_keys_count_what_an_engine_met_before_and_meets_after(tmp_path: Path) -> None:
    row = run("keys", plan(tmp_path))
    assert row.status is ProofStatus.PASS, row
    figures = row.figures
    assert (figures["keys_before"], figures["keys_after"]) == (3, 1)


def test_a_tree_fixed_already_is_taken_as_it_is(tmp_path: Path) -> None:
    row = run("keys", standing(plan(tmp_path)))
    assert row.status is ProofStatus.PASS, row
    assert "keys_before" not in row.figures


def test_a_decorator_naming_the_wrong_parameter_fails(tmp_path: Path) -> None:
    wrong = swap(KERNEL, KERNEL.replace("num_tokens", "num_reqs"))
    row = run("keys", plan(tmp_path, kernel=wrong))
    assert row.status is ProofStatus.FAIL
    assert "num_tokens is " in row.detail


def test_a_warm_up_with_int32_positions_fails(tmp_path: Path) -> None:
    row = run("keys", plan(tmp_path, warmup=swap("torch.int64", "torch.int32")))
    assert row.status is ProofStatus.FAIL
    assert "positions_ptr is ('*i32', 'D') and ('*i64', 'D')" in row.detail


def test_a_warm_up_that_passes_a_view_at_an_odd_offset_fails(tmp_path: Path) -> None:
    shifted = swap("(1, query_start_loc, positions)", "(1, query_start_loc, positions[1:])")
    longer = swap("torch.zeros(1,", "torch.zeros(2,")
    row = run("keys", plan(tmp_path, warmup=lambda text: shifted(longer(text))))
    assert row.status is ProofStatus.FAIL
    assert "positions_ptr" in row.detail


def test_one_call_does_not_warm_up_a_tree_that_picks_among_kernels(tmp_path: Path) -> None:
    row = run("keys", plan(tmp_path, fork="01-several-launches"))
    assert row.status is ProofStatus.FAIL
    assert "_several_requests_kernel" in row.detail or "_single_request_kernel" in row.detail


def test_calls_that_reach_every_kernel_warm_such_a_tree_up(tmp_path: Path) -> None:
    once = "        tables.compute_slot_mapping(1, query_start_loc, positions)\n"
    two = (
        "        several = torch.tensor([0, 1, 2], dtype=torch.int32, device=model_runner.device)\n"
        "        tables.compute_slot_mapping(2, several, torch.zeros(2, dtype=torch.int64, "
        "device=model_runner.device))\n"
    )
    row = run("keys", plan(tmp_path, fork="01-several-launches", warmup=swap(once, once * 2 + two)))
    assert row.status is ProofStatus.PASS, row
    assert row.figures["kernels"] == 3


def test_a_kernel_that_computes_another_slot_fails(tmp_path: Path) -> None:
    other = swap("block.to(tl.int64) * block_size + at", "block.to(tl.int64) * block_size + 1 + at")
    row = run("result", plan(tmp_path, kernel=other))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("after is not as before: token ")


def test_a_kernel_that_was_wrong_before_fails_too(tmp_path: Path) -> None:
    other = swap("block.to(tl.int64) * block_size + at", "block.to(tl.int64) * block_size + 1 + at")
    row = run("result", plan(tmp_path, tree=other))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("not the slots of the reference: token ")


def test_a_warm_up_that_leaves_its_row_behind_fails(tmp_path: Path) -> None:
    row = run("state", plan(tmp_path, warmup=swap("tables.clear_row(0)", "pass")))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("with no row in use, the warm-up changes the block count of row 0")


def test_a_warm_up_that_leaves_its_row_on_the_device_fails(tmp_path: Path) -> None:
    forgets = swap(
        "        tables.clear_row(0)\n        tables.commit_block_table(1)\n",
        "        tables.clear_row(0)\n",
    )
    row = run("state", plan(tmp_path, warmup=forgets))
    assert row.status is ProofStatus.FAIL
    assert "on the device" in row.detail


def test_a_warm_up_that_clears_a_live_row_fails(tmp_path: Path) -> None:
    careless = swap(
        "    if any(group.num_blocks_per_row.any() for group in groups):\n        return\n", ""
    )
    row = run("state", plan(tmp_path, warmup=careless))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("with row 0 in use, the warm-up changes the block count of row 0")


def test_a_warm_up_that_cleans_up_only_when_all_goes_well_fails(tmp_path: Path) -> None:
    def rash(text: str) -> str:
        return text.replace("    try:\n", "    if True:\n").replace(
            "    finally:\n", "    if True:\n"
        )

    row = run("state", plan(tmp_path, warmup=rash))
    assert row.status is ProofStatus.FAIL
    assert "the launch raising" in row.detail


def test_a_warm_up_that_moves_the_random_state_fails(tmp_path: Path) -> None:
    row = run("state", plan(tmp_path, warmup=swap("torch.zeros(1,", "torch.randint(1, (1,),")))
    assert row.status is ProofStatus.FAIL
    assert "torch's random state" in row.detail


def test_a_kernel_that_does_not_compile_fails(tmp_path: Path) -> None:
    row = run("compile", plan(tmp_path, kernel=swap("tl.program_id(0)", "tl.no_such_thing(0)")))
    assert row.status is ProofStatus.FAIL
    assert "no_such_thing" in row.detail


def test_a_target_that_triton_cannot_do_is_skipped_and_named(tmp_path: Path) -> None:
    row = run("compile", plan(tmp_path), Options(targets=("cuda:90", "rocm:1")))
    assert row.status is ProofStatus.SKIPPED
    assert "rocm:1" in row.detail
    assert "cuda:90 registers after" in row.figures


def test_a_tree_that_never_ends_is_stopped(tmp_path: Path) -> None:
    endless = swap("PAD_SLOT_ID = -1\n", "PAD_SLOT_ID = -1\nwhile True:\n    pass\n")
    row = run("keys", plan(tmp_path, kernel=endless), Options(timeout=1))
    assert row.status is ProofStatus.FAIL
    assert row.detail == "did not end within 1 s and was stopped"


def test_a_tree_that_ends_the_process_is_reported(tmp_path: Path) -> None:
    fatal = swap("PAD_SLOT_ID = -1\n", "PAD_SLOT_ID = -1\n__import__('os')._exit(3)\n")
    row = run("keys", plan(tmp_path, kernel=fatal))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("its process ended with status 3")


def test_what_the_tree_imports_and_is_not_here_is_stood_in_for(tmp_path: Path) -> None:
    wants = swap("import numpy as np\n", "import acme_ops\nimport numpy as np\n")
    row = run("keys", plan(tmp_path, tree=wants))
    assert row.status is ProofStatus.PASS, row
    assert "acme_ops" in str(row.figures["stand_ins"])


def test_a_warm_up_that_wants_what_the_runner_does_not_have_fails(tmp_path: Path) -> None:
    wants = swap("model_runner.input_batch.block_table\n", "model_runner.acme.block_table\n")
    row = run("keys", plan(tmp_path, warmup=wants))
    assert row.status is ProofStatus.FAIL
    assert "vllm/v1/worker/gpu/warmup.py:" in row.detail
    assert "`acme`" in row.detail


def test_a_tree_without_a_block_table_is_skipped(tmp_path: Path) -> None:
    gone = standing(plan(tmp_path))
    (tmp_path / "vllm/v1/worker/block_table.py").unlink()
    row = run("keys", gone)
    assert row.status is ProofStatus.SKIPPED
    assert row.detail == "the tree has no vllm/v1/worker/block_table.py"


@pytest.mark.parametrize("name", part_of([row.name for row in PROOFS if row.asked_by == "gpu"]))
def test_without_a_gpu_what_needs_one_is_skipped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "")
    row = run(name, plan(tmp_path))
    assert (row.status, row.detail) == (
        ProofStatus.SKIPPED,
        "torch sees no GPU on this machine",
    )
