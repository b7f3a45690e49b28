"""Writes to a real full disk, a real read-only mount: small tmpfs mounts, which need root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from codemods.write import WriteFailed, remove_leftovers
from tests.write.planned_tree import PATHS, PlannedTree, in_child, planned_tree

Mount = Callable[[str], Path]


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a tmpfs with the given options."""
    mounted: list[Path] = []

    def mount_tmpfs(options: str) -> Path:
        folder = tmp_path / f"mount{len(mounted)}"
        folder.mkdir()
        try:
            run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"cannot mount a tmpfs here: {error}")
        mounted.append(folder)
        return folder

    yield mount_tmpfs
    for folder in mounted:
        run("umount", "-l", str(folder))


def fill(folder: Path, leave: int) -> Path:
    """Fill the disk but for so many bytes."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - leave)
    return filler


def free(folder: Path) -> int:
    return os.statvfs(folder).f_bavail


def write_or_line(tree: PlannedTree) -> str:
    try:
        tree.write()
    except WriteFailed as failure:
        return str(failure)
    return ""


def test_a_disk_that_gets_full_at_any_page_leaves_every_file_as_it_was(mount: Mount) -> None:
    disk = mount("size=1m")
    tree = planned_tree(disk / "tree", size=20_000)
    page = os.sysconf("SC_PAGESIZE")
    lines = set()
    for pages in range(40):
        filler = fill(disk, pages * page)
        room = free(disk)
        line = write_or_line(tree)
        if line:
            assert "No space left on device" in line
            assert tree.content() == tree.old
            assert free(disk) == room
            lines.add(line)
        else:
            assert tree.content() == tree.new
        filler.unlink()
        tree.reset()
    assert any("cannot write vllm/v1/worker/block_table.py" in line for line in lines)
    assert any("cannot write vllm/v1/worker/gpu_worker.py" in line for line in lines)
    assert not line, "with room enough the write goes through"


def test_a_disk_without_room_for_names_leaves_every_file_as_it_was(mount: Mount) -> None:
    disk = mount("size=1m,nr_inodes=20")
    tree = planned_tree(disk / "tree")
    spare = []
    with suppress(OSError):
        for number in range(30):
            path = disk / str(number)
            path.touch()
            spare.append(path)
    while line := write_or_line(tree):
        assert "No space left on device" in line
        assert tree.content() == tree.old
        spare.pop().unlink()
    assert tree.content() == tree.new


def test_a_read_only_mount_is_one_line_and_nothing_is_written(mount: Mount) -> None:
    disk = mount("size=1m")
    tree = planned_tree(disk / "tree")
    run("mount", "-o", "remount,ro", str(disk))
    assert "Read-only file system; nothing was written" in write_or_line(tree)
    remove_leftovers(tree.root, PATHS)
    assert tree.content() == tree.old


def test_a_read_only_mount_inside_a_writable_tree_leaves_every_file(mount: Mount) -> None:
    disk = mount("size=1m")
    tree = planned_tree(disk / "tree")
    folder = str(tree.path(1).parent)
    run("mount", "--bind", folder, folder)
    try:
        run("mount", "-o", "remount,bind,ro", folder)
        assert "Read-only file system; nothing was written" in write_or_line(tree)
        assert tree.content() == tree.old
    finally:
        run("umount", folder)


def test_a_mount_that_turns_read_only_is_reported_and_completed_later(
    mount: Mount,
) -> None:
    disk = mount("size=1m")
    tree = planned_tree(disk / "tree")
    renames = 0

    def turn(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if name == "replace" and renames == 2:
            run("mount", "-o", "remount,ro", str(disk))

    ended = in_child(tree.write, turn)
    assert "restoring failed" in ended.line
    assert tree.files() == ended.files(tree) == tree.prefixes[1]
    run("mount", "-o", "remount,rw", str(disk))
    tree.apply()
    assert tree.content() == tree.new


def test_files_on_two_file_systems_are_written_together(mount: Mount) -> None:
    disk = mount("size=1m")
    tree = planned_tree(disk / "tree")
    other = tree.path(1).parent
    run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(other))
    try:
        tree.path(1).write_bytes(tree.changes[1].before)
        filler = fill(other, 0)
        assert "cannot write vllm/v1/worker/gpu/warmup.py: No space left" in write_or_line(tree)
        filler.unlink()
        assert tree.content() == tree.old
        tree.write()
        assert tree.content() == tree.new
    finally:
        run("umount", "-l", str(other))
