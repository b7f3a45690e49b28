"""Both recipes on one tree: in either order, at once, and as patches."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codemods.cli.main import main
from codemods.engine.plan import Verdict

from . import forks

SLOT_MAPPING = "slot-mapping"
WORKER = "vllm/v1/worker/gpu_worker.py"
WARMUP = "vllm/v1/worker/gpu/warmup.py"
BOTH = (SLOT_MAPPING, forks.RECIPE)
TREE = forks.fork("00-both-runners").files


def one_after_the_other(*recipes: str) -> forks.Files:
    files = TREE
    for recipe in recipes:
        files = forks.rewritten(files, forks.planned(files, recipe))
    return files


@pytest.mark.parametrize("order", [BOTH, BOTH[::-1]])
def test_in_either_order_the_tree_is_right_for_both(order: tuple[str, str]) -> None:
    plan = forks.planned(one_after_the_other(*order), *BOTH)
    assert [one.verdict for one in plan.recipes] == [Verdict.ALREADY_FIXED] * 2
    assert plan.changes == ()


def test_at_once_is_as_one_after_the_other() -> None:
    assert forks.rewritten(TREE, forks.planned(TREE, *BOTH)) == one_after_the_other(*BOTH)


def test_both_orders_make_the_same_of_every_file_but_the_place_of_the_text() -> None:
    one, other = one_after_the_other(*BOTH), one_after_the_other(*BOTH[::-1])
    assert {name for name in one if one[name] != other[name]} == {WORKER, WARMUP}
    for name in (WORKER, WARMUP):
        assert sorted(one[name].splitlines()) == sorted(other[name].splitlines())


def test_the_worker_reads_well_with_both() -> None:
    text = one_after_the_other(*BOTH)[WORKER].decode()
    assert (
        "from .gpu.warmup import (\n"
        "    warmup_kernels,\n"
        "    warmup_kv_block_zeroing_kernel,\n"
        "    warmup_v1_slot_mapping_kernel,\n"
        ")\n"
    ) in text
    assert (
        "\n"
        "        # Compile the KV block zeroing kernel before the first request.\n"
        "        warmup_kv_block_zeroing_kernel(self.model_runner)\n"
        "\n"
        "        if not self.use_v2_model_runner:\n"
        "            # V1: compile the slot mapping kernel before the first request.\n"
        "            warmup_v1_slot_mapping_kernel(self.model_runner)\n"
        "\n"
        "        # No request sees"
    ) in text


def test_without_a_recipe_named_only_slot_mapping_runs(tmp_path: Path) -> None:
    tree = repository(tmp_path)
    assert main(["apply", str(tree)]) == 0
    assert b"zeroing" not in git(tree, "diff")


def test_the_series_applies_and_leaves_what_apply_leaves(tmp_path: Path) -> None:
    tree, series = repository(tmp_path), tmp_path / "series"
    assert main(["diff", "--recipe=all", "--format=git", "-o", f"{series}/", str(tree)]) == 0
    patches = sorted(series.iterdir())
    assert len(patches) == 2
    git(tree, "am", "-q", *map(str, patches))
    assert git(tree, "status", "--porcelain") == b""
    assert applied(tree) == one_after_the_other(*BOTH)


@pytest.mark.parametrize("recipe", BOTH)
def test_each_patch_alone_applies(tmp_path: Path, recipe: str) -> None:
    tree, patch = repository(tmp_path), tmp_path / "one.patch"
    assert main(["diff", f"--recipe={recipe}", "--format=git", "-o", str(patch), str(tree)]) == 0
    git(tree, "am", "-q", str(patch))
    assert applied(tree) == one_after_the_other(recipe)


@pytest.mark.parametrize("recipe", BOTH)
def test_a_refusal_of_one_recipe_refuses_the_tree(recipe: str) -> None:
    broken = (
        "vllm/v1/worker/utils.py" if recipe == forks.RECIPE else "vllm/v1/worker/block_table.py"
    )
    plan = forks.planned({**TREE, broken: b"def (:\n"}, *BOTH)
    assert plan.verdict is Verdict.REFUSED
    assert plan.changes == ()


def repository(folder: Path) -> Path:
    tree = forks.write(TREE, folder / "tree")
    git(tree, "init", "-q")
    git(tree, "add", "--all")
    git(tree, "commit", "-q", "-m", "as it was")
    return tree


def applied(tree: Path) -> forks.Files:
    return {name: (tree / name).read_bytes() for name in TREE}


def git(tree: Path, *arguments: str) -> bytes:
    """git's stdout, in a world where the user has no settings of their own."""
    clean = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments],
        cwd=tree,
        env=clean,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()
    return ran.stdout
