"""Writing a plan: every file or none, and each file as it was but for its bytes."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from planned_tree import (
    PATHS,
    PlannedTree,
    count_calls,
    fail_at,
    hook,
    in_child,
    kill_at,
    metadata,
    planned_tree,
    tree_in_memory,
    with_path,
)

from codemods.engine.plan import EditName, Outcome, Reason, Status
from codemods.write import WriteFailed, pending, recover, write
from codemods.write.journal import discard, locked

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def tree(tmp_path: Path) -> PlannedTree:
    return planned_tree(tmp_path / "tree")


@pytest.fixture
def memory_tree() -> Iterator[PlannedTree]:
    with tree_in_memory() as made:
        yield made


def refused(tree: PlannedTree) -> str:
    """Write the plan, which must fail and leave every file; returns the one line."""
    left = tree.content()
    with pytest.raises(WriteFailed) as failure:
        write(tree.plan)
    assert tree.content() == left
    assert failure.value.restored
    line = str(failure.value)
    assert line.isprintable()
    return line


# What is written


def test_every_file_is_replaced_and_nothing_else_is_left(tree: PlannedTree) -> None:
    write(tree.plan)
    assert tree.wholly() == "new"


def test_a_plan_without_changes_does_not_look_at_the_tree(tree: PlannedTree) -> None:
    gone = replace(tree.plan.tree, root=tree.root / "gone")
    write(replace(tree.plan, changes=(), tree=gone))
    assert tree.wholly() == "old"


def test_a_file_that_stays_equal_is_not_replaced(tree: PlannedTree) -> None:
    first, *rest = tree.plan.changes
    inode = tree.path(0).stat().st_ino
    write(replace(tree.plan, changes=(replace(first, after=first.before), *rest)))
    assert tree.path(0).stat().st_ino == inode
    assert tree.path(0).read_bytes() == first.before
    assert tree.path(1).read_bytes() == rest[0].after


def test_a_refused_plan_is_never_written(tree: PlannedTree) -> None:
    refusal = Outcome(EditName.WORKER, Status.REFUSED, Reason.NO_ANCHOR, "no monitor")
    with pytest.raises(ValueError, match="refused"):
        write(replace(tree.plan, outcomes=(refusal,)))
    assert tree.wholly() == "old"


def test_a_second_write_of_the_same_plan_is_refused_and_changes_nothing(tree: PlannedTree) -> None:
    write(tree.plan)
    assert "has changed since it was read" in refused(tree)
    assert tree.wholly() == "new"


def test_all_that_a_restore_needs_is_on_disk_before_the_first_rename(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    with monkeypatch.context() as patch:
        hook(patch.setattr, lambda _seen, name: order.append(name))
        write(tree.plan)
    steps = [name for name in order if name in ("fsync", "link", "replace", "unlink")]
    journal, files = ["fsync", "fsync"], ["fsync", "link"] * 3
    folders = ["fsync", "fsync"]
    temporaries = ["unlink"] * 6
    assert steps == [
        *(*journal, *files, *folders),
        *(*["replace"] * 3, *folders),
        *(*temporaries, *folders, "unlink", "fsync"),
    ]


# What stays


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o640, 0o664, 0o4755, 0o2755, 0o1644])
def test_the_mode_stays_whatever_the_umask(tree: PlannedTree, mode: int) -> None:
    tree.path(1).chmod(mode)
    umask = os.umask(0o077)
    try:
        write(tree.plan)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(tree.path(1).stat().st_mode) == mode
    assert tree.wholly() == "new"


@needs_root
def test_owner_group_and_set_id_bits_stay(tree: PlannedTree) -> None:
    os.chown(tree.path(0), 1234, 5678)
    tree.path(0).chmod(0o6754)
    write(tree.plan)
    assert metadata(tree.path(0)) == (1234, 5678, 0o6754, 1)


def test_extended_attributes_stay(tree: PlannedTree) -> None:
    try:
        os.setxattr(tree.path(2), "user.note", b"\0kept")
    except (AttributeError, OSError) as error:
        pytest.skip(f"no extended attributes here: {error}")
    write(tree.plan)
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
    write(tree.plan)
    assert os.listxattr(tree.path(0)) == []
    assert metadata(tree.path(0)) == left


def test_a_file_with_other_hard_links_is_replaced_and_not_written_through(
    tree: PlannedTree, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.py"
    os.link(tree.path(0), cache)
    write(tree.plan)
    assert cache.read_bytes() == tree.plan.changes[0].before
    assert cache.stat().st_nlink == 1
    assert tree.wholly() == "new"


def test_two_names_of_one_inode_are_each_replaced(tree: PlannedTree) -> None:
    tree.path(1).unlink()
    os.link(tree.path(0), tree.path(1))
    first, second, third = tree.plan.changes
    both = (first, replace(second, before=first.before), third)
    write(replace(tree.plan, changes=both))
    assert tree.path(0).read_bytes() == first.after
    assert tree.path(1).read_bytes() == second.after


# Symbolic links


def test_a_link_inside_the_tree_stays_a_link_and_its_file_is_replaced(tree: PlannedTree) -> None:
    real = tree.root / "shared" / "real.py"
    real.parent.mkdir()
    tree.path(1).rename(real)
    tree.path(1).symlink_to("../../../../shared/real.py")
    write(tree.plan)
    assert tree.path(1).is_symlink()
    assert real.read_bytes() == tree.plan.changes[1].after


def test_a_root_that_is_a_link_is_followed(tree: PlannedTree, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree.root)
    write(replace(tree.plan, tree=replace(tree.plan.tree, root=tmp_path / "link")))
    assert tree.wholly() == "new"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_tree_is_refused(tree: PlannedTree, tmp_path: Path, what: str) -> None:
    inside = tree.path(1) if what == "file" else tree.path(1).parent
    outside = tmp_path / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    file = outside if what == "file" else outside / tree.path(1).name
    assert "link out of" in refused(tree)
    assert file.read_bytes() == tree.plan.changes[1].before


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hostname", "vllm/../../outside.py"])
def test_a_path_out_of_the_tree_is_refused(tree: PlannedTree, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside.py"
    outside.write_bytes(tree.plan.changes[2].before)
    with pytest.raises(WriteFailed):
        write(with_path(tree.plan, 2, path))
    assert tree.wholly() == "old"
    assert outside.read_bytes() == tree.plan.changes[2].before


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
        lambda path: path.write_bytes(b"# 1, line one\r\n" + b"y" * 64),
        lambda path: path.write_bytes(b"# 1, line one\r\n" + b"x" * 65),
        lambda path: path.write_bytes(b"# 1, line one\n" + b"x" * 64),
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


def test_a_file_edited_while_the_write_is_at_work_keeps_that_edit(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = b"# their edit"

    def edit(_seen: int, name: str) -> None:
        if name == "replace":
            tree.path(2).write_bytes(theirs)

    with monkeypatch.context() as patch:
        hook(patch.setattr, edit)
        with pytest.raises(WriteFailed) as failure:
            write(tree.plan)
    assert f"{PATHS[2]} has changed since it was read; every file is restored" in str(failure.value)
    assert tree.content() == {**tree.old, PATHS[2]: theirs}


# Failures half way


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES])
def test_a_failure_of_any_call_leaves_every_file_as_it_was(
    memory_tree: PlannedTree, error: int
) -> None:
    tree = memory_tree
    inodes = [tree.path(index).stat().st_ino for index in range(3)]
    seen = set()
    for step in range(1, count_calls(tree) + 1):
        code = in_child(lambda: write(tree.plan), fail_at(step, error, lasting=False))
        # 5: only the clean-up failed, and the line says that every file is rewritten.
        assert tree.files() == (tree.old if code == 4 else tree.new), (step, code)
        if code == 4:
            assert inodes == [tree.path(index).stat().st_ino for index in range(3)]
        recover(tree.root)
        assert tree.wholly() == ("old" if code == 4 else "new")
        seen.add(code)
        tree.reset()
        inodes = [tree.path(index).stat().st_ino for index in range(3)]
    assert seen == {0, 4, 5}


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_a_failure_that_lasts_is_told_truly_and_ended_by_the_next_run(
    memory_tree: PlannedTree, error: int
) -> None:
    tree = memory_tree
    for step in range(1, count_calls(tree) + 1):
        assert in_child(lambda: write(tree.plan), fail_at(step, error, lasting=True)) in (0, 4, 5)
        recover(tree.root)
        assert tree.wholly() in ("old", "new")
        tree.reset()


def test_a_failed_restore_says_which_file_is_in_which_state(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames = 0

    def fail(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if name == "replace" and renames > 1:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        hook(patch.setattr, fail)
        with pytest.raises(WriteFailed, match="restoring failed") as failure:
            write(tree.plan)
    assert not failure.value.restored
    assert f"{PATHS[0]} is rewritten, {PATHS[1]} is as it was" in str(failure.value)
    with pytest.raises(WriteFailed, match="must be undone or completed first"):
        write(tree.plan)
    assert "undone" in recover(tree.root)
    assert tree.wholly() == "old"


def test_where_links_are_not_allowed_a_copy_serves(
    memory_tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = memory_tree
    tree = memory_tree
    tree.path(0).chmod(0o751)

    def no_link(*_args: object, **_kwargs: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    for step in range(1, count_calls(tree) + 1):
        in_child(lambda: write(tree.plan), fail_at(step, errno.ENOSPC, lasting=False))
        recover(tree.root)
        assert tree.wholly() in ("old", "new")
        assert stat.S_IMODE(tree.path(0).stat().st_mode) == 0o751
        tree.reset()
    write(tree.plan)
    assert tree.wholly() == "new"


def test_any_other_exception_puts_every_file_back_and_goes_on(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, renames = os.replace, []

    def replace_twice(source: Path, target: Path) -> None:
        renames.append(target)
        if len(renames) == 2:
            raise MemoryError
        real(source, target)

    monkeypatch.setattr(os, "replace", replace_twice)
    with pytest.raises(MemoryError):
        write(tree.plan)
    assert tree.wholly() == "old"


# Permissions


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


def as_user(user: int, action: Callable[[], None]) -> tuple[int, str]:
    """Run `action` as a user who is not root; exit status and the line it failed with."""
    reading, writing = os.pipe()

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        try:
            action()
        except WriteFailed as failure:
            os.write(writing, str(failure).encode())
            raise

    code = in_child(dropped, lambda _seen, _name: None)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return code, pipe.read()


@pytest.mark.parametrize(
    ("closed", "mode", "said"),
    [
        (lambda tree: tree.path(1), 0o444, PATHS[1]),
        (lambda tree: tree.path(1).parent, 0o555, PATHS[1]),
        (lambda tree: tree.root, 0o555, "cannot keep a journal in"),
    ],
    ids=["file", "its-folder", "root"],
)
def test_without_permission_nothing_is_written(
    theirs: PlannedTree, closed: Callable[[PlannedTree], Path], mode: int, said: str
) -> None:
    own(theirs, 65534)
    closed(theirs).chmod(mode)
    code, line = as_user(65534, lambda: write(theirs.plan))
    assert code == 4
    assert said in line
    assert "Permission denied" in line
    assert "nothing was written" in line
    closed(theirs).chmod(0o755)
    assert theirs.wholly() == "old"


@needs_root
def test_an_owner_that_cannot_be_kept_refuses_the_write(theirs: PlannedTree) -> None:
    own(theirs, 65534)
    os.chown(theirs.path(1), 1234, 65534)
    theirs.path(1).chmod(0o664)
    code, line = as_user(65534, lambda: write(theirs.plan))
    assert code == 4
    assert "owner and group (1234:65534) cannot be kept" in line
    assert theirs.wholly() == "old"
    assert metadata(theirs.path(1))[:2] == (1234, 65534)


@needs_root
def test_another_user_can_see_that_a_write_was_interrupted(theirs: PlannedTree) -> None:
    in_child(lambda: write(theirs.plan), kill_at(count_calls(theirs) // 2, signal.SIGKILL))
    assert pending(theirs.root)
    assert as_user(65534, lambda: bool(pending(theirs.root)) or os._exit(1)) == (0, "")


# Two at once


def test_while_another_apply_holds_the_tree_nothing_is_written(tree: PlannedTree) -> None:
    with locked(tree.root):
        assert "another apply is at work" in refused(tree)
        assert pending(tree.root) is None


@pytest.mark.parametrize("content", [b"", b'{"vllm-codemods-journal": 1, "tok'])
def test_a_lock_file_that_nobody_holds_does_not_hinder(tree: PlannedTree, content: bytes) -> None:
    (tree.root / ".vllm-codemods-journal").write_bytes(content)
    assert pending(tree.root) is None
    write(tree.plan)
    assert tree.wholly() == "new"


def test_a_write_at_work_is_not_taken_for_an_interrupted_one(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def look(_seen: int, name: str) -> None:
        if name == "replace":
            found.append(pending(tree.root))

    with monkeypatch.context() as patch:
        hook(patch.setattr, look)
        write(tree.plan)
    assert found == [None, None, None]
    assert tree.wholly() == "new"


def test_a_journal_removed_while_its_lock_was_taken_is_not_the_lock(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = fcntl.flock, []

    def end_another_write_first(opened: int, how: int) -> None:
        calls.append(how)
        if len(calls) == 1:
            discard(tree.root)
        real(opened, how)

    monkeypatch.setattr(fcntl, "flock", end_another_write_first)
    with locked(tree.root):
        assert (tree.root / ".vllm-codemods-journal").exists()
    assert len(calls) == 2


def test_of_several_at_once_one_writes_and_the_others_fail(tree: PlannedTree) -> None:
    for _ in range(10):
        plans = [
            replace(
                tree.plan,
                changes=tuple(replace(c, after=c.before + number) for c in tree.plan.changes),
            )
            for number in (b"1", b"2", b"3")
        ]
        children = []
        for plan in plans:
            child = os.fork()
            if child == 0:
                try:
                    write(plan)
                    os._exit(0)
                except WriteFailed:
                    os._exit(4)
                finally:
                    os._exit(99)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(codes) == [0, 4, 4]
        winner = plans[codes.index(0)]
        assert tree.content() == {change.path: change.after for change in winner.changes}
        tree.reset()


def test_temporaries_of_an_apply_on_a_folder_above_are_not_mixed_with(tree: PlannedTree) -> None:
    in_child(lambda: write(tree.plan), kill_at(count_calls(tree) // 2, signal.SIGKILL))
    left = tree.content()
    inner = replace(tree.plan.tree, root=tree.root / "vllm")
    changes = tuple(
        replace(change, path=change.path.removeprefix("vllm/")) for change in tree.plan.changes
    )
    with pytest.raises(WriteFailed, match="another TREE"):
        write(replace(tree.plan, tree=inner, changes=changes))
    assert tree.content() == left
