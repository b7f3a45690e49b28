"""The record on disk of a write at work: which files it replaces, and their hashes on both sides.

It lies in the tree's root as `.vllm-codemods-journal` from before the first temporary file until
after the last is gone, and carries the lock (`flock`) that keeps two writes apart. The lock dies
with its process, so a journal that nobody holds was left by a write that was killed.

Beside each target stand, while it is being replaced, `.NAME.vllm-codemods-TOKEN.new` (what it will
be) and `.NAME.vllm-codemods-TOKEN.old` (what it was). A journal may come with a downloaded tree, so
nothing in it is believed: names of temporaries follow from the token, paths stay inside the root.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

NAME = ".vllm-codemods-journal"
TEMPORARY = re.compile(r"\.vllm-codemods-[0-9a-f]{16}\.(new|old)\Z")
_SCHEMA = 1
_LIMIT = 1 << 20  # bytes; ours holds about 200 a file
_LOCK_WAIT = 1.0  # seconds: a write takes far less, a look at the journal a moment
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WriteFailed(Exception):
    """One line for stderr: what failed, where, and in what state the files are.

    `restored` is True when every file is as it was before the write.
    """

    def __init__(self, line: str, *, restored: bool = True) -> None:
        super().__init__(line)
        self.restored = restored


@dataclass(frozen=True)
class Entry:
    """One file of a write; `path` is POSIX, relative to the root and free of symbolic links."""

    root: Path
    path: str
    before: str
    after: str
    token: str

    @property
    def target(self) -> Path:
        return self.root / self.path

    @property
    def new(self) -> Path:
        return self._beside("new")

    @property
    def old(self) -> Path:
        return self._beside("old")

    def _beside(self, side: str) -> Path:
        return self.target.with_name(f".{self.target.name}.vllm-codemods-{self.token}.{side}")


@dataclass(frozen=True)
class Journal:
    """A write at work, or one that was killed; `root` is resolved."""

    root: Path
    entries: tuple[Entry, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(sorted({entry.target.parent for entry in self.entries}))


def shown(path: str | Path) -> str:
    """A path as one printable line."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


@contextmanager
def locked(root: Path) -> Iterator[int]:
    """Hold the tree's lock; yields the journal, open for reading and writing, perhaps empty.

    Raises WriteFailed when another process keeps it for more than a second, OSError when the root
    takes no file. The journal stays on disk until `discard`.
    """
    journal = _acquire(root)
    try:
        yield journal
    finally:
        os.close(journal)


def _acquire(root: Path) -> int:
    deadline = time.monotonic() + _LOCK_WAIT
    while True:
        journal = _open(root, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current(root, journal):
                return journal
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(journal)
                raise WriteFailed(
                    f"another apply is at work on {shown(root)}; nothing was written"
                ) from None
            time.sleep(0.02)
        except BaseException:
            os.close(journal)
            raise
        os.close(journal)


def _open(root: Path, flags: int) -> int:
    path = root / NAME
    with suppress(FileNotFoundError):
        # Before opening: a device may act on being opened.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise WriteFailed(f"{shown(path)} is not a regular file and not ours; remove it")
    return os.open(path, flags | _SAFE, 0o666)


def _is_current(root: Path, journal: int) -> bool:
    """Whether the open journal is still in the tree: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(journal), os.lstat(root / NAME))
    except FileNotFoundError:
        return False


def peek(root: Path) -> Journal | None:
    """The journal left by a write that was killed; None when there is none, or one is at work.

    Writes nothing. Raises WriteFailed for a journal that is not ours, OSError when unreadable.
    """
    try:
        journal = _open(root, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(journal, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return load(root, journal)
    except BlockingIOError:
        return None
    finally:
        os.close(journal)


def store(journal: Journal, into: int) -> None:
    """Put the journal on disk, so that what follows can be found again."""
    text = {
        "vllm-codemods-journal": _SCHEMA,
        "token": journal.entries[0].token,
        "files": [
            {"path": entry.path, "before": entry.before, "after": entry.after}
            for entry in journal.entries
        ],
    }
    # The line end comes last: a journal without it was cut off, and nothing had begun.
    os.ftruncate(into, 0)
    write_all(into, json.dumps(text).encode("ascii") + b"\n")
    os.fsync(into)
    sync_folder(journal.root)


def discard(root: Path) -> None:
    """Take the journal away; the caller holds its lock."""
    with suppress(FileNotFoundError):
        os.unlink(root / NAME)
    sync_folder(root)


def load(root: Path, journal: int) -> Journal | None:
    """What an open journal says; None when it is empty or cut off, so that nothing had begun.

    Raises WriteFailed when it says anything that our own writes never say.
    """
    content = os.pread(journal, _LIMIT + 1, 0)
    if len(content) <= _LIMIT and not content.endswith(b"\n"):
        return None
    try:
        if len(content) > _LIMIT:
            raise ValueError("too long")
        data = json.loads(content)
        if data["vllm-codemods-journal"] != _SCHEMA:
            raise ValueError("unknown schema")
        token = _matching(r"[0-9a-f]{16}", data["token"])
        entries = tuple(_entry(root, token, item) for item in data["files"])
        if not entries or len({entry.path for entry in entries}) < len(entries):
            raise ValueError("no file, or the same twice")
    except (ValueError, LookupError, TypeError, RecursionError):
        raise WriteFailed(
            f"{shown(root / NAME)} was not written by this tool, or not for this tree; "
            "look at it and remove it: nothing was written"
        ) from None
    return Journal(root, entries)


def _entry(root: Path, token: str, item: dict[str, object]) -> Entry:
    path = _matching(r"[^\0]{1,4096}", item["path"])
    os.fsencode(path)
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or not pure.name:
        raise ValueError("not a plain relative path")
    folder = (root / pure).parent
    if os.path.realpath(folder) != str(folder):
        raise ValueError("a symbolic link on the way")
    if path == NAME or TEMPORARY.search(path):
        raise ValueError("one of our own files")
    before = _matching(r"[0-9a-f]{64}", item["before"])
    after = _matching(r"[0-9a-f]{64}", item["after"])
    if before == after:
        raise ValueError("no change")
    return Entry(root, path, before, after, token)


def _matching(pattern: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
        raise ValueError(pattern)
    return value


def write_all(into: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(into, rest) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system can."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
