"""Objects are read one after another, whatever is between them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codemods.engine.files import MAX_BYTES
from codemods.engine.git import GitFailed, opened
from codemods.engine.objects import Entry, MissingObject, Objects, TooLarge, reading
from codemods.engine.repository import Repository
from tests.repositories import git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@contextmanager
def objects_of(root: Path) -> Iterator[Objects]:
    found = Repository.at(root)
    assert found is not None
    with opened(found) as running, reading(running) as objects:
        yield objects


def test_commits_trees_and_blobs_are_read(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": b"text", "b/c": b""})
    with objects_of(root) as objects:
        tree = objects.tree(objects.root(objects.commit("main")))
        assert sorted(tree) == ["a", "b"]
        assert tree["b"].is_folder
        assert tree["a"] == Entry("100644", git(root, "rev-parse", "HEAD:a"))
        assert objects.blob(tree["a"].id) == b"text"


def test_what_is_missing_of_another_kind_or_too_large_leaves_the_next_readable(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path, {"a": b"text", "large": bytes(MAX_BYTES + 1)})
    blob, large = git(root, "rev-parse", "HEAD:a"), git(root, "rev-parse", "HEAD:large")
    with objects_of(root) as objects:
        for _ in range(2):
            with pytest.raises(MissingObject):
                objects.blob("0" * 40)
            with pytest.raises(MissingObject):
                objects.tree(blob)
            with pytest.raises(MissingObject):
                objects.commit(blob)
            with pytest.raises(TooLarge):
                objects.blob(large)
            assert objects.blob(blob) == b"text"


@pytest.mark.parametrize("raw", [b"x", b"100644 a", b"100644 a\0short", b"100644a\0" + b"x" * 20])
def test_a_broken_tree_is_one_line(raw: bytes, tmp_path: Path) -> None:
    root = repository(tmp_path)
    tree = git(root, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=raw)
    with objects_of(root) as objects, pytest.raises(GitFailed, match="broken"):
        objects.tree(tree)


def test_no_process_stays(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": b"text"})
    with objects_of(root) as objects:
        objects.commit("main")
        process = objects.process
        folder = objects.git.folder
    assert process is not None
    assert process.poll() is not None
    assert not folder.exists()
