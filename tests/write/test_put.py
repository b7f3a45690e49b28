"""A patch that `diff -o` writes: the whole of it, or the file is as it was."""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.write.files import put
from tests.write.planned_tree import count_calls, fail_at, folder_in_memory, in_child, kill_at

OLD, NEW = b"old\n", b"new\n" * 4000


@pytest.fixture
def patch() -> Iterator[Path]:
    with folder_in_memory() as folder:
        yield folder / "fix.patch"


def write(patch: Path) -> None:
    """As the command: an error is its own, with a code of its own."""
    try:
        put(patch, NEW)
    except OSError:
        os._exit(2)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("lasting", [True, False])
def test_a_call_that_fails_leaves_the_old_file_or_the_new(
    patch: Path, there: bool, error: int, lasting: bool
) -> None:
    steps = count_calls(lambda: put(patch, NEW))
    assert steps > 5
    for step in range(1, steps + 1):
        patch.unlink(missing_ok=True)
        if there:
            patch.write_bytes(OLD)
        ended = in_child(lambda: write(patch), fail_at(step, error, lasting=lasting))
        assert ended.code in (0, 2)
        found = patch.read_bytes() if patch.exists() else None
        assert found == NEW or (ended.code == 2 and found == (OLD if there else None))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_old_file_or_the_new(patch: Path, number: int) -> None:
    for step in range(1, count_calls(lambda: put(patch, NEW)) + 1):
        patch.write_bytes(OLD)
        in_child(lambda: write(patch), kill_at(step, number))
        assert patch.read_bytes() in (OLD, NEW)


def test_nothing_else_is_left_in_the_folder(patch: Path) -> None:
    put(patch, NEW)
    assert [*patch.parent.iterdir()] == [patch]
    with pytest.raises(OSError, match="No such file"):
        put(patch.parent / "none" / "fix.patch", NEW)


def test_the_mode_of_a_file_stays_and_that_of_a_new_one_is_the_users(patch: Path) -> None:
    umask = os.umask(0o027)
    try:
        put(patch, NEW)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(patch.stat().st_mode) == 0o640
    patch.chmod(0o600)
    put(patch, OLD)
    assert stat.S_IMODE(patch.stat().st_mode) == 0o600


def test_a_link_is_followed_and_a_device_written_to(patch: Path) -> None:
    link = patch.with_name("link")
    link.symlink_to(patch)
    put(link, NEW)
    assert link.is_symlink()
    assert patch.read_bytes() == NEW
    put(Path(os.devnull), NEW)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
