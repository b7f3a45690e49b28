"""Refs and patterns lead to commits; what names none is one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codemods.engine.checkout import UsageError
from codemods.engine.git import opened
from codemods.engine.objects import reading
from codemods.engine.refs import resolved
from codemods.engine.repository import Repository
from tests.repositories import commit, git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def found(root: Path, *wanted: str) -> dict[str, str]:
    place = Repository.at(root)
    assert place is not None
    with opened(place) as running, reading(running) as objects:
        return {ref.name: ref.commit for ref in resolved(running, objects, wanted)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = repository(tmp_path / "r", {"a": b""})
    for name in ("release/1", "release/2", "other"):
        git(made, "branch", name)
    commit(made, {"b": b""})
    git(made, "tag", "-a", "-m", "annotated", "v1")
    return made


def test_names_expressions_and_ids_lead_to_commits(root: Path) -> None:
    first, last = git(root, "rev-parse", "HEAD~1"), git(root, "rev-parse", "HEAD")
    wanted = ("main", "other", "v1", "HEAD~1", "refs/heads/release/1", last[:12])
    assert found(root, *wanted) == dict(
        zip(wanted, (last, first, last, first, first, last), strict=True)
    )


@pytest.mark.parametrize("packed", [False, True])
def test_a_pattern_means_every_ref_that_it_matches(packed: bool, root: Path) -> None:
    if packed:
        git(root, "pack-refs", "--all")
    assert list(found(root, "release/*")) == ["release/1", "release/2"]
    assert list(found(root, "v?", "release/[2-9]", "main")) == ["v1", "release/2", "main"]
    assert set(found(root, "*")) == {"main", "other", "release/1", "release/2", "v1"}
    assert list(found(root, "refs/tags/*")) == ["v1"]


def test_a_ref_named_twice_is_one(root: Path) -> None:
    assert list(found(root, "release/1", "release/*")) == ["release/1", "release/2"]


def test_a_branch_and_a_tag_of_one_name_are_both_there(root: Path) -> None:
    git(root, "tag", "other", "HEAD")
    assert list(found(root, "oth*")) == ["refs/heads/other", "refs/tags/other"]


def test_remote_branches_are_matched_and_their_head_is_not(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(root), "clone")
    assert list(found(tmp_path / "clone", "origin/*")) == [
        "origin/main", "origin/other", "origin/release/1", "origin/release/2",
    ]  # fmt: skip


def test_a_tag_of_a_blob_is_passed_over(root: Path) -> None:
    git(root, "tag", "v2-key", git(root, "rev-parse", "HEAD:a"))
    assert list(found(root, "v*")) == ["v1"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "none",
        "none/*",
        "-x",
        "--all",
        "main\nother",
        "HEAD:a",
        "main:",
        "HEAD~9",
        "\x1b[2J",
        "0" * 40,
    ],
)
def test_what_names_no_commit_is_one_line(name: str, root: Path) -> None:
    with pytest.raises(UsageError) as caught:
        found(root, name)
    assert str(caught.value).isprintable()
