"""A real vLLM tree on a real GPU: `pytest -m gpu --vllm-tree TREE`."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from codemods.recipes.slot_mapping.proofs.gpu import prove

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Verdict
from codemods.engine.planning import make_plan
from codemods.prove import Options, Proof, ProofStatus
from codemods.write import write

pytestmark = pytest.mark.gpu

CONTRAST = """
import sys, tempfile
from pathlib import Path
import torch
from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.prove import Options
from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build, runner
from codemods.prove.runner import make_job
from codemods.recipes.slot_mapping.proofs.loading import loaded
from codemods.prove.triton_binder import observed

def closed_pull_request(tables, device):
    start = torch.tensor([0, 1], dtype=torch.int32, device=device)
    positions = torch.zeros(1, dtype=torch.int64, device=device)
    tables.add_row(([1],) * len(tables.block_tables), 0)
    tables.commit_block_table(1)
    tables.compute_slot_mapping(1, start, positions)
    tables.clear_row(0)
    tables.commit_block_table(1)

plan = make_plan(Checkout.find(Path(sys.argv[1])))
with tempfile.TemporaryDirectory() as folder:
    job = make_job(plan, Options(), Path(folder))
    engine = Engine(((16, 16), (32, 16)), max_num_reqs=4, max_num_tokens=64, device="cuda")
    with loaded(job.after) as tree, observed(lambda launch: None):
        counts = []
        for warm in ("ours", "closed"):
            tables = build(tree, engine)
            tables.add_row(([7, 8, 9], [5]), 0)
            tables.commit_block_table(1)
            if warm == "ours":
                tree.warmup(runner(tree, tables, buffers(engine, job.call_sites[0])))
            else:
                closed_pull_request(tables, "cuda")
            # The request's next block goes where its row's count says.
            tables.append_row(([11], [12]), 0)
            counts.append([int(table.block_table.np[0, 0]) for table in tables.block_tables])
print(counts)
"""


def row(plan: Plan, name: str) -> Proof:
    proof = prove(name, plan, Options(gpu=True))
    if proof.status is ProofStatus.SKIPPED:
        pytest.skip(proof.detail)
    return proof


@pytest.mark.parametrize("name", ["gpu-compiles", "gpu-result", "gpu-state", "gpu-cost"])
def test_the_row_holds(plan: Plan, name: str) -> None:
    proof = row(plan, name)
    assert proof.status is ProofStatus.PASS, f"{proof.detail} {proof.figures}"


def test_requests_compile_before_the_rewrite_and_not_after(plan: Plan) -> None:
    if plan.verdict is not Verdict.FIXABLE:
        pytest.skip(f"the tree is {plan.verdict.value}")
    figures = row(plan, "gpu-compiles").figures
    assert int(figures["compiled_by_requests_before"]) > 0
    assert figures["compiled_by_requests_after"] == 0


def test_the_warmup_leaves_no_memory_in_use(plan: Plan) -> None:
    assert row(plan, "gpu-cost").figures["warmup_leaves_bytes"] == 0


def test_a_live_row_survives_our_warmup_and_not_the_closed_pull_requests(vllm_tree: Path) -> None:
    """Why rows in use are left alone: a cleared row's next block overwrites its first."""
    done = subprocess.run(
        [sys.executable, "-c", CONTRAST, str(vllm_tree)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().splitlines()[-1] == "[[7, 10], [11, 24]]"


@pytest.fixture(scope="session")
def rewritten(vllm_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rewritten copy of the tree: Python files copied, the rest linked to the original's."""
    copy = tmp_path_factory.mktemp("rewritten")
    package = vllm_tree / Checkout.find(vllm_tree).package
    for path in package.rglob("*"):
        here = copy / "vllm" / path.relative_to(package)
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        here.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py":
            shutil.copy(path, here)
        else:
            here.symlink_to(path.resolve())
    write(make_plan(Checkout.find(copy)))
    return copy


def test_the_rewritten_worker_imports_in_real_vllm(rewritten: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("msgspec") is None:
        pytest.skip("vLLM's dependencies are not installed")
    code = (
        "from vllm.v1.worker import gpu_worker, block_table;"
        "assert gpu_worker.warmup_v1_slot_mapping_kernel;"
        "print(gpu_worker.__file__)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(rewritten), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path / "triton")},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert str(rewritten) in done.stdout
