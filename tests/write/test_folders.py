"""Two applies at once, and what a killed one left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.write import WriteFailed, remove_leftovers, write
from codemods.write.folders import Busy, locked, temporary
from tests.write.planned_tree import PATHS, PlannedTree, fail_call, hook, in_child, kill_at

LEFT = ".vllm-codemods-0123456789abcdef.tmp"


# Two at once


def test_of_several_at_once_one_writes_and_the_others_fail(tree: PlannedTree) -> None:
    for _ in range(10):
        plans = [
            [replace(change, after=change.before + number) for change in tree.changes]
            for number in (b"1", b"2", b"3")
        ]
        children = []
        for plan in plans:
            child = os.fork()
            if child == 0:
                try:
                    remove_leftovers(tree.root, PATHS)
                    write(tree.root, plan)
                    os._exit(0)
                except WriteFailed:
                    os._exit(4)
                finally:
                    os._exit(99)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(codes) == [0, 4, 4]
        winner = plans[codes.index(0)]
        assert tree.content() == {change.path: change.after for change in winner}
        tree.reset()


def test_while_another_apply_is_at_work_nothing_is_written(tree: PlannedTree) -> None:
    folder = tree.path(1).parent
    with locked([folder]), pytest.raises(WriteFailed) as failure:
        tree.write()
    assert str(failure.value) == f"another apply is at work in {folder}; nothing was written"
    assert tree.content() == tree.old
    tree.write()
    assert tree.content() == tree.new


def test_an_apply_on_a_folder_inside_the_tree_is_kept_out_too(tree: PlannedTree) -> None:
    inner = [
        replace(change, path=change.path.removeprefix("vllm/v1/")) for change in tree.changes[:1]
    ]
    with locked([tree.path(0).parent]), pytest.raises(WriteFailed, match="another apply"):
        write(tree.root / "vllm/v1", inner)
    assert tree.content() == tree.old


def test_a_write_of_a_plan_that_another_apply_has_written_changes_nothing(
    tree: PlannedTree,
) -> None:
    tree.write()
    with pytest.raises(WriteFailed, match="has changed since it was read; nothing was written"):
        tree.write()
    assert tree.content() == tree.new


def test_a_lock_ends_with_its_process(tree: PlannedTree) -> None:
    in_child(tree.write, kill_at(30, 9))
    with locked([tree.path(0).parent]) as certain:
        assert certain


def test_a_second_lock_is_refused(tmp_path: Path) -> None:
    with locked([tmp_path]), pytest.raises(Busy), locked([tmp_path]):
        pass


# What a killed apply left


@pytest.fixture
def left(tree: PlannedTree) -> Path:
    path = tree.path(1).with_name(LEFT)
    path.touch()
    return path


def test_a_temporary_file_of_a_killed_apply_is_removed(tree: PlannedTree, left: Path) -> None:
    remove_leftovers(tree.root, PATHS)
    assert tree.content() == tree.old


def test_it_is_removed_where_nothing_is_to_be_written(tree: PlannedTree) -> None:
    tree.write()
    tree.path(1).with_name(LEFT).touch()
    tree.apply()
    assert tree.content() == tree.new


def test_a_temporary_file_of_an_apply_at_work_stays(tree: PlannedTree, left: Path) -> None:
    with locked([left.parent]):
        remove_leftovers(tree.root, PATHS)
    assert left.exists()


@pytest.mark.parametrize(("age", "stays"), [(0, True), (3000, True), (4000, False)])
def test_without_locks_the_age_decides(
    tree: PlannedTree, left: Path, monkeypatch: pytest.MonkeyPatch, age: int, stays: bool
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + age)
    with monkeypatch.context() as patch:
        hook(patch.setattr, fail_call("flock", errno.ENOLCK))
        remove_leftovers(tree.root, PATHS)
    assert left.exists() is stays


def test_without_locks_a_second_name_of_an_old_file_is_not_taken_for_old(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(tree.path(1), (0, 0))
    second = tree.path(1).with_name(LEFT)
    os.link(tree.path(1), second)
    with monkeypatch.context() as patch:
        hook(patch.setattr, fail_call("flock", errno.ENOLCK))
        remove_leftovers(tree.root, PATHS)
    assert second.exists()


@pytest.mark.parametrize(
    "name",
    [
        ".vllm-codemods-0123456789abcdef.tmp.py",
        "x.vllm-codemods-0123456789abcdef.tmp",
        ".vllm-codemods-0123456789abcde.tmp",
        ".vllm-codemods-journal",
        ".tmp",
    ],
)
def test_a_file_of_another_name_stays(tree: PlannedTree, name: str) -> None:
    path = tree.path(1).with_name(name)
    path.touch()
    remove_leftovers(tree.root, PATHS)
    assert path.exists()


def test_a_folder_or_a_link_of_that_name_does_no_harm(tree: PlannedTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / LEFT).touch()
    tree.path(0).with_name(LEFT).mkdir()
    tree.path(1).with_name(LEFT).symlink_to(outside / LEFT)
    remove_leftovers(tree.root, PATHS)
    assert tree.path(0).with_name(LEFT).is_dir()
    assert (outside / LEFT).exists()


@pytest.mark.parametrize("path", ["../outside/x.py", "link/x.py", "gone/x.py"])
def test_a_folder_out_of_the_tree_or_gone_is_not_looked_at(
    tree: PlannedTree, tmp_path: Path, path: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / LEFT).touch()
    (tree.root / "link").symlink_to(outside)
    remove_leftovers(tree.root, [path])
    assert (outside / LEFT).exists()


def test_what_cannot_be_removed_is_left(tree: PlannedTree, left: Path) -> None:
    ended = in_child(lambda: remove_leftovers(tree.root, PATHS), fail_call("unlink", errno.EACCES))
    assert ended.code == 0
    assert left.exists()


def test_a_name_is_short_and_new_each_time(tmp_path: Path) -> None:
    first, second = temporary(tmp_path), temporary(tmp_path)
    assert first != second
    assert len(first.name) == len(LEFT) < 40
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_on_the_folder_and_leaves_no_file(tmp_path: Path) -> None:
    with locked([tmp_path]):
        opened = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.close(opened)
    assert list(tmp_path.iterdir()) == []
