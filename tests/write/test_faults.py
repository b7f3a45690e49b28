"""A call that fails: every file is as it was, or the line says which is not; nothing is lost."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from codemods.write import WriteFailed
from tests.forks.profiles import FRESH
from tests.write.planned_tree import (
    PATHS,
    PlannedTree,
    count_calls,
    fail_at,
    fail_call,
    hook,
    in_child,
)

ERRORS = [errno.EIO, errno.ENOSPC, errno.EROFS]


def steps(tree: PlannedTree, error: int) -> range:
    """The calls that fail with an error: each with one of the three, in a search with each."""
    first, every = (0, 1) if FRESH else (ERRORS.index(error), len(ERRORS))
    return range(1 + first, count_calls(tree.write) + 1, every)


@pytest.mark.parametrize("error", ERRORS)
def test_a_call_that_fails_once_leaves_every_file_old_or_every_file_new(
    memory_tree: PlannedTree, error: int
) -> None:
    tree = memory_tree
    codes = set()
    for step in steps(tree, error):
        tree.reset()
        inodes = [tree.path(index).stat().st_ino for index in range(3)]
        ended = in_child(tree.write, fail_at(step, error))
        assert tree.files() == ended.files(tree), (step, ended)
        assert tree.files() in (tree.old, tree.new)
        if ended.code == 4:
            assert [tree.path(index).stat().st_ino for index in range(3)] == inodes
        codes.add(ended.code)
        tree.apply()
        assert tree.content() == tree.new
    assert codes == {0, 4}


@pytest.mark.parametrize("error", ERRORS)
def test_a_failure_that_lasts_is_reported_truly_and_the_next_apply_completes_the_write(
    memory_tree: PlannedTree, error: int
) -> None:
    tree = memory_tree
    lines = []
    for step in steps(tree, error):
        tree.reset()
        ended = in_child(tree.write, fail_at(step, error, lasting=True))
        assert tree.files() == ended.files(tree), (step, ended)
        assert tree.files() in tree.prefixes
        lines.append(ended.line)
        tree.apply()
        assert tree.content() == tree.new
    assert any("restoring failed" in line for line in lines)


@pytest.mark.parametrize("call", ["fsync", "flock"])
@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOLCK, errno.EBADF])
def test_a_folder_without_locks_or_syncs_is_written_all_the_same(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch, call: str, error: int
) -> None:
    real = os.fsync

    def sync_files_only(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(error, os.strerror(error))
        real(opened)

    with monkeypatch.context() as patch:
        if call == "fsync":
            patch.setattr(os, "fsync", sync_files_only)
        else:
            hook(patch.setattr, fail_call("flock", error))
        tree.apply()
    assert tree.content() == tree.new


def test_a_rename_that_is_made_and_reported_as_failed_counts_as_made(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def as_on_a_network(source: Path, target: Path) -> None:
        real(source, target)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(os, "replace", as_on_a_network)
    tree.write()
    assert tree.content() == tree.new


def test_a_failed_restore_stops_where_the_tree_works_and_names_what_is_rewritten(
    tree: PlannedTree,
) -> None:
    renames = 0

    def fail_from_the_third(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if name == "replace" and renames > 2:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    ended = in_child(tree.write, fail_from_the_third)
    assert ended.line == (
        f"cannot write {PATHS[2]}: Read-only file system; "
        f"restoring failed: cannot write {PATHS[1]}: Read-only file system; "
        f"still rewritten: {PATHS[0]}, {PATHS[1]}; the next apply writes the rest"
    )
    assert tree.content() == tree.prefixes[2]


def test_what_someone_edits_after_its_rename_is_not_undone(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = b"# their edit"
    renames = 0

    def edit(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if name == "replace" and renames == 3:
            tree.path(1).write_bytes(theirs)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        hook(patch.setattr, edit)
        with pytest.raises(WriteFailed, match=f"{PATHS[1]} has changed since it was rewritten"):
            tree.write()
    assert tree.content() == {**tree.prefixes[1], PATHS[1]: theirs}


def test_what_someone_edits_before_its_rename_is_kept(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = b"# their edit"

    def edit(_seen: int, name: str) -> None:
        if name == "replace":
            tree.path(2).write_bytes(theirs)

    with monkeypatch.context() as patch:
        hook(patch.setattr, edit)
        with pytest.raises(WriteFailed) as failure:
            tree.write()
    assert str(failure.value) == (
        f"{PATHS[2]} has changed since it was read; every file is restored"
    )
    assert tree.content() == {**tree.old, PATHS[2]: theirs}


def test_where_links_are_not_allowed_a_copy_serves(
    memory_tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = memory_tree
    tree.path(0).chmod(0o751)

    def no_link(*_args: object, **_kwargs: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    for step in steps(tree, errno.ENOSPC):
        tree.reset()
        ended = in_child(tree.write, fail_at(step, errno.ENOSPC))
        assert tree.files() == ended.files(tree)
        assert stat.S_IMODE(tree.path(0).stat().st_mode) == 0o751


@pytest.mark.parametrize("nth", [1, 3])
def test_an_error_of_another_kind_is_restored_and_named(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    renames = 0

    def no_memory(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if name == "replace" and renames == nth:
            raise MemoryError

    with monkeypatch.context() as patch:
        hook(patch.setattr, no_memory)
        with pytest.raises(WriteFailed) as failure:
            tree.write()
    said = "nothing was written" if nth == 1 else "every file is restored"
    assert str(failure.value) == f"MemoryError; {said}"
    assert tree.content() == tree.old
