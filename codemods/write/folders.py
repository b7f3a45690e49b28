"""The folders of a write: their locks, and the temporary files in them.

The lock (`flock`) is on the folder itself, so no lock file is left in a tree and the lock ends with
its process. Not every file system has locks or syncs for folders; a write goes on without them.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

# A short name, so that it fits where the target's own name does.
_TEMPORARY = re.compile(r"\.vllm-codemods-[0-9a-f]{16}\.tmp")
_STALE = 3600.0  # seconds: where nothing can be locked, age says that a temporary file was left


class Busy(Exception):
    """Another process holds the lock of a folder; says which."""


def temporary(folder: Path) -> Path:
    """A name for a temporary file that no other process has; nothing is made."""
    return folder / f".vllm-codemods-{os.urandom(8).hex()}.tmp"


def remove(temporary: Path) -> None:
    """Remove a temporary file if it is there and can be removed."""
    with suppress(OSError):
        os.unlink(temporary)


def remove_stale(folders: Iterable[Path]) -> None:
    """Remove the temporary files that no write at work can own."""
    for folder in folders:
        with suppress(Busy, OSError):
            found = [path for path in folder.iterdir() if _TEMPORARY.fullmatch(path.name)]
            if not found:
                continue
            with locked([folder]) as certain:
                for path in found:
                    # The inode's own time: a hard link to a file has the file's time of writing.
                    if certain or time.time() - os.lstat(path).st_ctime > _STALE:
                        remove(path)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system can."""
    with suppress(OSError), _opened(folder) as opened:
        os.fsync(opened)


@contextmanager
def locked(folders: Iterable[Path]) -> Iterator[bool]:
    """Hold the folders' locks; yields False where one of them cannot be locked.

    Raises Busy when another process holds one.
    """
    with ExitStack() as stack:
        # In one order, so that of several applies at once one gets all.
        held = [_lock(folder, stack) for folder in sorted(folders)]
        yield all(held)


def _lock(folder: Path, stack: ExitStack) -> bool:
    try:
        fcntl.flock(stack.enter_context(_opened(folder)), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Busy(f"another apply is at work in {folder}") from None
    except OSError:
        return False
    return True


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        with suppress(OSError):  # nothing was written through it
            os.close(opened)
