"""A repository is found, and its commit read, from its files alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from codemods.engine.repository import BrokenRepository, Repository, head_commit, may_be_tracked
from tests.repositories import commit, git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "r", {"a/b": b"x"})


@pytest.mark.parametrize("packed", [False, True])
def test_the_commit_of_a_branch_is_known(packed: bool, root: Path) -> None:
    if packed:
        git(root, "pack-refs", "--all")
    assert head_commit(root) == git(root, "rev-parse", "HEAD")


def test_a_packed_ref_is_older_than_a_loose_one(root: Path) -> None:
    git(root, "pack-refs", "--all")
    new = commit(root, {"c": b"y"})
    assert head_commit(root) == new


def test_a_detached_head_a_worktree_and_a_symbolic_ref_are_known(
    root: Path, tmp_path: Path
) -> None:
    first = git(root, "rev-parse", "HEAD")
    commit(root, {"c": b"y"})
    git(root, "worktree", "add", "-q", "--detach", "../side", first)
    assert head_commit(tmp_path / "side") == first
    git(root, "symbolic-ref", "refs/heads/other", "refs/heads/main")
    git(root, "symbolic-ref", "HEAD", "refs/heads/other")
    assert head_commit(root) == git(root, "rev-parse", "HEAD")


def test_no_commit_yet_is_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert head_commit(tmp_path) is None


@pytest.mark.parametrize("text", ["", "ref: ", "ref: refs/heads/../../../../etc/passwd", "x" * 99])
def test_a_head_that_names_no_ref_is_none(text: str, root: Path) -> None:
    (root / ".git/HEAD").write_text(text)
    assert head_commit(root) is None


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
def test_a_fifo_does_not_hold_the_tool_up(name: str, root: Path) -> None:
    (root / ".git" / name).unlink()
    os.mkfifo(root / ".git" / name)
    assert head_commit(root) is None


def test_the_innermost_repository_around_a_path_is_found(root: Path) -> None:
    inner = repository(root / "a" / "inner", {"c": b""})
    for path, top in ((root / "a", root), (inner / "c", inner), (root / "a/none/x", root)):
        found = Repository.around(path)
        assert found is not None
        assert found.top == top


def test_what_is_no_repository_is_none(tmp_path: Path) -> None:
    assert Repository.at(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert Repository.at(tmp_path) is None


def test_a_git_file_that_leads_nowhere_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(BrokenRepository, match="names no repository"):
        Repository.at(tmp_path)


def test_a_file_may_be_tracked_where_a_repository_is_around_it(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = outside / "link.py"
    link.symlink_to(root / "a.py")
    assert may_be_tracked(root / "folder" / "a.py")
    assert may_be_tracked(link)
    assert not may_be_tracked(outside / "a.py")
    (outside / ".git").write_text("gitdir: ../nowhere\n")
    assert may_be_tracked(outside / "a.py")
