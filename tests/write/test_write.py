"""Writing a plan: every file or none, in the plan's order."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.write import WriteFailed, write
from tests.write.planned_tree import PATHS, PlannedTree, hook


def refused(tree: PlannedTree) -> str:
    """Write the plan, which must fail and leave every file; returns the one line."""
    left = tree.content()
    with pytest.raises(WriteFailed) as failure:
        tree.write()
    assert str(failure.value).endswith("; nothing was written")
    assert tree.content() == left
    return str(failure.value)


# What is written


def test_every_file_is_replaced_and_nothing_else_is_left(tree: PlannedTree) -> None:
    tree.write()
    assert tree.content() == tree.new


def test_a_plan_without_changes_does_not_look_at_the_tree(tree: PlannedTree) -> None:
    write(tree.root / "gone", [])
    assert tree.content() == tree.old


def test_a_file_that_stays_equal_is_not_replaced(tree: PlannedTree) -> None:
    first, *rest = tree.changes
    inode = tree.path(0).stat().st_ino
    write(tree.root, [replace(first, after=first.before), *rest])
    assert tree.path(0).stat().st_ino == inode
    assert tree.content() == {**tree.new, PATHS[0]: first.before}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_files_are_renamed_in_the_order_of_the_changes(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    seen = []

    def look(_seen: int, name: str) -> None:
        if name == "replace":
            seen.append([tree.path(n).read_bytes() == tree.changes[n].after for n in order])

    with monkeypatch.context() as patch:
        hook(patch.setattr, look)
        write(tree.root, [tree.changes[n] for n in order])
    assert seen == [[False, False, False], [True, False, False], [True, True, False]]


def test_all_that_a_restore_needs_is_there_before_the_first_rename(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    with monkeypatch.context() as patch:
        hook(patch.setattr, lambda _seen, name: order.append(name))
        tree.write()
    steps = [name for name in order if name in ("fsync", "link", "replace")]
    assert steps == [*["fsync", "link"] * 2, "fsync", *["replace", "fsync"] * 3]


@pytest.mark.parametrize("length", [200, 250, 255])
def test_a_name_as_long_as_the_file_system_allows_is_written(
    tree: PlannedTree, length: int
) -> None:
    path = tree.path(0).with_name("n" * length)
    path.write_bytes(b"old")
    change = replace(tree.changes[0], path=path.relative_to(tree.root).as_posix())
    write(tree.root, [replace(change, before=b"old", after=b"new"), *tree.changes])
    assert path.read_bytes() == b"new"
    assert tree.temporaries() == []


# Symbolic links


def test_a_link_inside_the_tree_stays_a_link_and_its_file_is_replaced(tree: PlannedTree) -> None:
    real = tree.root / "shared" / "real.py"
    real.parent.mkdir()
    tree.path(1).rename(real)
    tree.path(1).symlink_to("../../../../shared/real.py")
    tree.write()
    assert tree.path(1).is_symlink()
    assert real.read_bytes() == tree.changes[1].after


def test_a_root_that_is_a_link_is_followed(tree: PlannedTree, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree.root)
    write(tmp_path / "link", tree.changes)
    assert tree.content() == tree.new


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_tree_is_refused(tree: PlannedTree, tmp_path: Path, what: str) -> None:
    inside = tree.path(1) if what == "file" else tree.path(1).parent
    outside = tmp_path / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    file = outside if what == "file" else outside / tree.path(1).name
    assert "link out of" in refused(tree)
    assert file.read_bytes() == tree.changes[1].before


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hostname", "vllm/../../outside.py"])
def test_a_path_out_of_the_tree_is_refused(tree: PlannedTree, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside.py"
    outside.write_bytes(tree.changes[2].before)
    with pytest.raises(WriteFailed, match="nothing was written"):
        write(tree.root, [*tree.changes[:2], replace(tree.changes[2], path=path)])
    assert tree.content() == tree.old
    assert outside.read_bytes() == tree.changes[2].before


def test_one_file_under_two_names_is_refused(tree: PlannedTree) -> None:
    tree.path(1).unlink()
    tree.path(1).symlink_to(tree.path(0))
    assert "same file" in refused(tree)


# A tree that is not what was read


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero: reading it never ends


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        try:
            made.bind(str(path))
        except OSError as error:
            pytest.skip(f"no socket here: {error}")


@pytest.mark.parametrize(
    "make",
    [
        fifo,
        device,
        bound_socket,
        Path.mkdir,
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: None,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"# 1, line one\r\n#" + b"y" * 64),
        lambda path: path.write_bytes(b"# 1, line one\r\n#" + b"x" * 65),
        lambda path: path.write_bytes(b"# 1, line one\n#" + b"x" * 64),
    ],
    ids=[
        *("fifo", "device", "socket", "folder", "loop", "link-to-device"),
        *("gone", "empty", "edited", "grown", "line-ends"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_longer_what_was_read_is_refused(
    tree: PlannedTree, make: Callable[[Path], None]
) -> None:
    tree.path(1).unlink()
    make(tree.path(1))
    assert PATHS[1] in refused(tree)
