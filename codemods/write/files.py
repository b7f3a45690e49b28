"""One file at a time: read it safely, and make a new one that looks like it."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from codemods.write.folders import remove, temporary

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BOUND_TO_CONTENT = {"security.ima", "security.evm"}  # the kernel signs a file's bytes with these


def read_regular(path: Path, limit: int, access: int) -> bytes:
    """At most `limit` bytes of a regular file that can be opened with `access`, such as O_RDWR.

    Raises OSError, also for a FIFO, device, folder or symbolic link, none of which it opens.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    with os.fdopen(os.open(path, access | _SAFE), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(limit)


def create_like(model: Path, path: Path, content: bytes) -> None:
    """A new file on disk with the model's owner, group, mode and extended attributes.

    Raises OSError when one of the first three cannot be kept; attributes are kept where possible.
    """
    wanted = os.lstat(model)
    opened = _create(path, 0o600)
    try:
        _write_all(opened, content)
        _copy_owner(opened, wanted)
        _copy_attributes(opened, model)
        _copy_mode(opened, wanted)  # last: a write or a chown clears the set-id bits
        os.fsync(opened)
    finally:
        os.close(opened)


def put(path: Path, content: bytes) -> None:
    """Write a file that the user named: the whole of it, or it is as it was. Raises OSError.

    A link is followed. A pipe or a device gets the bytes as it is.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    new = temporary(target.parent)
    try:
        if target.exists():
            create_like(target, new, content)
        else:
            _create_new(new, content)
        os.replace(new, target)
    finally:
        remove(new)


def _create_new(path: Path, content: bytes) -> None:
    opened = _create(path, 0o666)
    try:
        _write_all(opened, content)
        os.fsync(opened)
    finally:
        os.close(opened)


def _create(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, mode)


def _write_all(opened: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(opened, rest) :]


def _copy_owner(opened: int, wanted: os.stat_result) -> None:
    made = os.fstat(opened)
    if (made.st_uid, made.st_gid) == (wanted.st_uid, wanted.st_gid):
        return
    try:
        os.fchown(opened, wanted.st_uid, wanted.st_gid)
    except OSError as error:
        owner = f"its owner and group ({wanted.st_uid}:{wanted.st_gid}) cannot be kept"
        raise OSError(error.errno, f"{owner}: {error.strerror}") from None


def _copy_mode(opened: int, wanted: os.stat_result) -> None:
    mode = stat.S_IMODE(wanted.st_mode)
    if stat.S_IMODE(os.fstat(opened).st_mode) != mode:
        os.fchmod(opened, mode)
    # The kernel drops the set-group-id bit in silence for a group that the user is not in.
    if stat.S_IMODE(os.fstat(opened).st_mode) != mode:
        raise OSError(errno.EPERM, f"its mode ({mode:04o}) cannot be kept")


def _copy_attributes(opened: int, model: Path) -> None:
    if sys.platform != "linux":
        return
    # A failure is no error: many file systems have no extended attributes, and only root may set
    # some of them (`security.*`, `trusted.*`). A source file works without them.
    with suppress(OSError):
        wanted = set(os.listxattr(model, follow_symlinks=False)) - _BOUND_TO_CONTENT
        # A folder's default ACL gives a new file an ACL that the model may not have.
        for name in set(os.listxattr(opened)) - wanted:
            with suppress(OSError):
                os.removexattr(opened, name)
        for name in wanted:
            with suppress(OSError):
                os.setxattr(opened, name, os.getxattr(model, name, follow_symlinks=False))


def keep_old(target: Path, old: Path, content: bytes) -> None:
    """Keep a second name of a file, so that the file itself can come back after a rename.

    A link needs no room and keeps everything; a copy serves where the file system or the kernel
    (fs.protected_hardlinks) allows no link.
    """
    try:
        os.link(target, old, follow_symlinks=False)
    except (OSError, NotImplementedError):
        create_like(target, old, content)
