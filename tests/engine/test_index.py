"""A file that a sparse checkout leaves out is not taken for one that the tree does not have."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from codemods.engine.checkout import WORKER, Checkout
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, Sources
from tests.engine.test_uncommitted import git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
TEST = "../tests/v1/worker/test_gpu_model_runner.py"
FILES = (f"vllm/{WORKER}", "vllm/v1/worker/gpu/warmup.py", TEST.removeprefix("../"), "a/b.py")


def repository(root: Path) -> Path:
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    return root


def left_out(root: Path, relative: str) -> bool:
    try:
        Sources(Checkout.find(root)).read(relative)
    except Refusal as refusal:
        return refusal.reason is Reason.OUTSIDE_SPARSE_CHECKOUT and "sparse" in refusal.detail
    return False


@pytest.mark.parametrize("index", ["--no-sparse-index", "--sparse-index"])
def test_tests_that_the_rules_leave_out_are_refused(index: str, tmp_path: Path) -> None:
    git(repository(tmp_path), "sparse-checkout", "set", index, "vllm")
    assert not (tmp_path / "tests").exists()
    assert left_out(tmp_path, TEST)
    assert not left_out(tmp_path, WORKER)
    assert not left_out(tmp_path, "v1/worker/none.py")


def test_a_folder_of_the_package_that_the_rules_leave_out_is_refused(tmp_path: Path) -> None:
    git(repository(tmp_path), "sparse-checkout", "set", "--no-cone", "/*", "!/vllm/v1/worker/gpu/")
    assert left_out(tmp_path, "v1/worker/gpu/warmup.py")
    assert not left_out(tmp_path, TEST)


def test_the_package_folder_as_root_is_asked_too(tmp_path: Path) -> None:
    git(repository(tmp_path), "sparse-checkout", "set", "--no-cone", "/*", "!/vllm/v1/worker/gpu/")
    assert left_out(tmp_path / "vllm", "v1/worker/gpu/warmup.py")


def test_a_file_marked_by_hand_and_taken_away_is_refused(tmp_path: Path) -> None:
    repository(tmp_path)
    git(tmp_path, "update-index", "--skip-worktree", FILES[1])
    assert not left_out(tmp_path, "v1/worker/gpu/warmup.py")
    (tmp_path / FILES[1]).unlink()
    assert left_out(tmp_path, "v1/worker/gpu/warmup.py")


def test_a_file_that_was_only_deleted_is_not_there(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / FILES[1]).unlink()
    assert not left_out(tmp_path, "v1/worker/gpu/warmup.py")


def test_outside_a_repository_nothing_is_left_out(tmp_path: Path) -> None:
    shutil.rmtree(repository(tmp_path) / ".git")
    (tmp_path / FILES[1]).unlink()
    assert not left_out(tmp_path, "v1/worker/gpu/warmup.py")


def test_a_repository_that_does_not_answer_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codemods.engine.git.TIMEOUT", 0.3)
    git(repository(tmp_path), "update-index", "--split-index")
    (shared,) = (tmp_path / ".git").glob("sharedindex.*")
    shared.unlink()
    os.mkfifo(shared)
    sources = Sources(Checkout.find(tmp_path))
    start = time.monotonic()
    assert [sources.read(f"v1/worker/none{number}.py") for number in range(20)] == [None] * 20
    assert time.monotonic() - start < 3


def test_a_broken_index_leaves_nothing_out(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / ".git/index").write_bytes(b"DIRC\0\0\0\4broken")
    assert not left_out(tmp_path, "v1/worker/none.py")
