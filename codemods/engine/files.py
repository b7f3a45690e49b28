"""Reads bytes that come from outside, within limits: from a tree on the disk, and single files.

No other module opens a file of a tree or a download. A link out of the tree, a FIFO, a device, a
file or folder over the limits is an error of one line; none of them can block the tool.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from codemods.engine.index import LeftOut

MAX_BYTES = 8 << 20  # of one file; vLLM's largest module has 0.4 MB
MAX_TOTAL = 256 << 20  # of one tree
MAX_ENTRIES = 50_000  # of one folder


class UnreadableFile(Exception):
    """A file is there but cannot be read as one."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


class Files(Protocol):
    """The files of a tree. A name is POSIX, relative to the tree's root; "." is the root."""

    def read(self, name: str) -> bytes | None:
        """A file's bytes, None where there is no such file.

        Links are followed only inside the tree. Raises UnreadableFile for what is there and is no
        file that can be read within the limits.
        """

    def mode(self, name: str) -> str:
        """git's mode for a file: "100755" when its owner may run it, else "100644"."""

    def exists(self, name: str) -> bool:
        """Whether anything has that name, a link to nothing too."""

    def names(self, folder: str) -> tuple[str, ...]:
        """The entries of a folder, sorted; none where it is no folder."""

    def folders(self, folder: str) -> tuple[str, ...]:
        """The names of the folders in a folder, sorted, no links and no hidden ones."""

    def real_folder(self, name: str) -> str | None:
        """The name behind all links; None where it leads out of the tree."""

    def folder_name(self, name: str) -> str:
        """The last part of a folder's real name, the root's own for "."."""

    def left_out(self, name: str) -> bool:
        """Whether the tree has the file, and the rules of a sparse checkout leave it out here."""


class Disk:
    """A tree on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._left = MAX_TOTAL

    @cached_property
    def _real_root(self) -> Path:
        return self.root.resolve()

    def read(self, name: str) -> bytes | None:
        path = self.root / name
        try:
            if not path.resolve(strict=True).is_relative_to(self._real_root):
                raise UnreadableFile(name, "a link that leads out of the tree")
            data = read_file(path)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.islink(path):
                raise UnreadableFile(name, "a link that leads nowhere") from None
            return None
        except RuntimeError:  # Path.resolve on a circle of links, before Python 3.13
            raise UnreadableFile(name, "a link that leads in a circle") from None
        except ValueError as error:  # a name with a NUL byte
            raise UnreadableFile(name, str(error)) from None
        except OSError as error:
            raise UnreadableFile(name, error.strerror or str(error)) from None
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile(name, f"more than {MAX_TOTAL >> 20} MiB of the tree were read")
        return data

    def mode(self, name: str) -> str:
        try:
            executable = (self.root / name).stat().st_mode & stat.S_IXUSR
        except OSError:
            return "100644"
        return "100755" if executable else "100644"

    def exists(self, name: str) -> bool:
        return os.path.lexists(self.root / name)

    def names(self, folder: str) -> tuple[str, ...]:
        inside = self.real_folder(folder) is not None
        return tuple(name for name, _ in self._entries(folder)) if inside else ()

    def folders(self, folder: str) -> tuple[str, ...]:
        found = self._entries(folder)
        return tuple(name for name, is_folder in found if is_folder and not name.startswith("."))

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        """Name, and whether it is a folder and no link; of an endless folder only the first."""
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
                    if len(found) == MAX_ENTRIES:
                        break
        except OSError:
            return []
        return sorted(found)

    def real_folder(self, name: str) -> str | None:
        root = self._real_root
        try:
            real = (root / name).resolve()
        except (OSError, RuntimeError, ValueError):
            return None
        return real.relative_to(root).as_posix() if real.is_relative_to(root) else None

    def folder_name(self, name: str) -> str:
        return (self._real_root / name).resolve().name

    def left_out(self, name: str) -> bool:
        from codemods.engine.repository import may_leave_out

        path = Path(os.path.realpath(self.root / name))
        return may_leave_out(path) and self._sparse.has(path)

    @cached_property
    def _sparse(self) -> LeftOut:
        from codemods.engine.index import LeftOut  # brings what runs git, which takes long

        return LeftOut()


def read_file(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file, at most `limit`.

    Raises OSError whose `strerror` says what is there in its place, or that it is too large.
    """
    data = read_start(path, limit + 1)  # a file may say that it is small, and be endless
    if len(data) > limit:
        raise _unfit(path, _too_large(limit))
    return data


def read_start(path: Path, count: int) -> bytes:
    """The first bytes of a regular file, or all of it where it has fewer. Raises as `read_file`."""
    # O_NONBLOCK: a FIFO must not hold the tool up before it is known to be one.
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(opened)
        if stat.S_ISDIR(status.st_mode):
            raise _unfit(path, "there is a folder where a file should be")
        if not stat.S_ISREG(status.st_mode):
            raise _unfit(path, "not a regular file")
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(count)
    finally:
        os.close(opened)


def _too_large(limit: int) -> str:
    return f"larger than {limit >> 20} MiB" if limit >> 20 else f"larger than {limit} bytes"


def _unfit(path: Path, why: str) -> OSError:
    import errno

    return OSError(errno.EINVAL, why, str(path))
