"""One file at a time: what stays as it was, and what cannot be kept."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.write import write
from tests.write.planned_tree import PATHS, PlannedTree, in_child, metadata, planned_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o640, 0o664, 0o4755, 0o2755, 0o1644])
def test_the_mode_stays_whatever_the_umask(tree: PlannedTree, mode: int) -> None:
    tree.path(1).chmod(mode)
    umask = os.umask(0o077)
    try:
        tree.write()
    finally:
        os.umask(umask)
    assert stat.S_IMODE(tree.path(1).stat().st_mode) == mode
    assert tree.content() == tree.new


@needs_root
def test_owner_group_and_set_id_bits_stay(tree: PlannedTree) -> None:
    os.chown(tree.path(0), 1234, 5678)
    tree.path(0).chmod(0o6754)
    tree.write()
    assert metadata(tree.path(0)) == (1234, 5678, 0o6754, 1)


def test_extended_attributes_stay(tree: PlannedTree) -> None:
    try:
        os.setxattr(tree.path(2), "user.note", b"\0kept")
    except (AttributeError, OSError) as error:
        pytest.skip(f"no extended attributes here: {error}")
    tree.write()
    assert os.getxattr(tree.path(2), "user.note") == b"\0kept"
    assert os.listxattr(tree.path(1)) == []


def test_an_acl_that_the_folder_would_give_is_not_added(tree: PlannedTree) -> None:
    # Version 2: owner rwx, user 1234 rwx, group r-x, mask rwx, others r-x; in little-endian.
    no_one = 0xFFFFFFFF
    entries = ((1, 7, no_one), (2, 7, 1234), (4, 5, no_one), (16, 7, no_one), (32, 5, no_one))
    acl = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, bits, who in entries
    )
    try:
        os.setxattr(tree.path(0).parent, "system.posix_acl_default", acl)
    except (AttributeError, OSError) as error:
        pytest.skip(f"no ACLs here: {error}")
    left = metadata(tree.path(0))
    tree.write()
    assert os.listxattr(tree.path(0)) == []
    assert metadata(tree.path(0)) == left


def test_a_file_with_other_hard_links_is_replaced_and_not_written_through(
    tree: PlannedTree, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.py"
    os.link(tree.path(0), cache)
    tree.write()
    assert cache.read_bytes() == tree.changes[0].before
    assert cache.stat().st_nlink == 1
    assert tree.content() == tree.new


def test_two_names_of_one_inode_are_each_replaced(tree: PlannedTree) -> None:
    tree.path(1).unlink()
    os.link(tree.path(0), tree.path(1))
    first, second, third = tree.changes
    both = (first, replace(second, before=first.before), third)
    write(tree.root, both)
    assert tree.path(0).read_bytes() == first.after
    assert tree.path(1).read_bytes() == second.after


@pytest.fixture
def theirs() -> Iterator[PlannedTree]:
    """A tree where user 65534 can reach it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield planned_tree(Path(folder) / "tree")


def own(tree: PlannedTree, user: int) -> None:
    if os.geteuid() != 0:
        return
    for path in (tree.root, *tree.root.rglob("*")):
        os.chown(path, user, user)


def as_user(user: int, action: Callable[[], None]) -> str:
    """Run `action`, which must fail, as a user who is not root; the line it failed with."""

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        action()

    ended = in_child(dropped)
    assert ended.code == 4
    return ended.line


@pytest.mark.parametrize(
    ("closed", "mode"),
    [(lambda tree: tree.path(1), 0o444), (lambda tree: tree.path(1).parent, 0o555)],
    ids=["file", "its-folder"],
)
def test_without_permission_nothing_is_written(
    theirs: PlannedTree, closed: Callable[[PlannedTree], Path], mode: int
) -> None:
    own(theirs, 65534)
    closed(theirs).chmod(mode)
    line = as_user(65534, theirs.write)
    assert line == f"cannot write {PATHS[1]}: Permission denied; nothing was written"
    closed(theirs).chmod(0o755)
    assert theirs.content() == theirs.old


@needs_root
def test_an_owner_that_cannot_be_kept_refuses_the_write(theirs: PlannedTree) -> None:
    own(theirs, 65534)
    os.chown(theirs.path(1), 1234, 65534)
    theirs.path(1).chmod(0o664)
    line = as_user(65534, theirs.write)
    assert "owner and group (1234:65534) cannot be kept" in line
    assert theirs.content() == theirs.old
    assert metadata(theirs.path(1))[:2] == (1234, 65534)


@pytest.mark.parametrize("mode", [0o555, 0o311], ids=["root-closed", "folder-not-listed"])
def test_a_folder_that_needs_no_change_or_cannot_be_listed_is_no_reason_to_refuse(
    theirs: PlannedTree, mode: int
) -> None:
    own(theirs, 65534)
    folder = theirs.root if mode == 0o555 else theirs.path(1).parent
    folder.chmod(mode)

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        theirs.write()

    assert in_child(dropped).code == 0
    folder.chmod(0o755)
    assert theirs.content() == theirs.new
