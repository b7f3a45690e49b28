"""Reads commits, trees and blobs out of a git repository, by one `git cat-file --batch`."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from codemods.engine.files import MAX_BYTES
from codemods.engine.git import TIMEOUT, Git, GitFailed, GitSilent, read_some, stopped

_HEADER = re.compile(rb"([0-9a-f]+) (commit|tree|blob|tag) (\d+)")
_TREE_LINE = re.compile(rb"tree ([0-9a-f]+)\n")


class MissingObject(Exception):
    """The repository does not have the object: no such name, or a partial clone without it."""


class TooLarge(Exception):
    """An object is larger than a file may be."""


@dataclass(frozen=True)
class Entry:
    """What a name in a git tree means; `mode` is octal, as git writes it."""

    mode: str
    id: str

    @property
    def is_folder(self) -> bool:
        return self.mode in ("40000", "040000")

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")


@dataclass
class Objects:
    """The objects of a repository; trees are read once.

    After the first answer that does not come in time there is none any more.
    """

    git: Git
    process: subprocess.Popen[bytes] | None = None
    _trees: dict[str, dict[str, Entry]] = field(default_factory=dict)
    _buffer: bytes = b""
    _silent: GitSilent | None = None

    def commit(self, expression: str) -> str:
        """The id of the commit that an expression such as `main` or `v1~2` names.

        Raises MissingObject, GitFailed.
        """
        return self._read(f"{expression}^{{commit}}", b"commit")[0]

    def root(self, commit: str) -> str:
        """The id of a commit's tree."""
        found = _TREE_LINE.match(self._read(commit, b"commit")[1])
        if found is None:
            raise GitFailed(f"{commit} is no commit that can be read")
        return found[1].decode()

    def blob(self, name: str) -> bytes:
        """A blob's bytes. Raises MissingObject, TooLarge, GitFailed."""
        return self._read(name, b"blob")[1]

    def tree(self, name: str) -> dict[str, Entry]:
        """A tree's entries by name. Raises as `blob`."""
        if name not in self._trees:
            self._trees[name] = dict(_entries(self._read(name, b"tree")[1], len(name) // 2))
        return self._trees[name]

    def _read(self, name: str, kind: bytes) -> tuple[str, bytes]:
        """An object's id and its bytes."""
        if self._silent is not None:
            raise self._silent
        deadline = time.monotonic() + TIMEOUT
        self._send(name)
        header = self._line(deadline)
        found = _HEADER.fullmatch(header)
        if found is None:
            raise MissingObject(name)
        size = int(found[3])
        if size > MAX_BYTES:
            self.close()  # the rest of the answer is not wanted
            raise TooLarge(name)
        data = self._take(size + 1, deadline)[:-1]
        if found[2] != kind:
            raise MissingObject(name)
        return found[1].decode(), data

    def _send(self, name: str) -> None:
        if self.process is None:
            self.process = self.git.start("cat-file", "--batch", stdin=subprocess.PIPE)
            self._buffer = b""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(os.fsencode(name) + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self._ended() from None

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            self._buffer += self._some(deadline)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _take(self, size: int, deadline: float) -> bytes:
        parts, count = [self._buffer], len(self._buffer)
        while count < size:
            parts.append(self._some(deadline))
            count += len(parts[-1])
        data = b"".join(parts)
        self._buffer = data[size:]
        return data[:size]

    def _some(self, deadline: float) -> bytes:
        assert self.process is not None
        try:
            part = read_some(self.process, deadline)
        except GitSilent as error:
            self._silent = error
            self.close()
            raise
        if not part:
            raise self._ended()
        return part

    def _ended(self) -> GitFailed:
        self.close()
        return GitFailed("git ended while it read the repository's objects: is one broken?")

    def close(self) -> None:
        """End the process; a later read starts another."""
        process, self.process = self.process, None
        if process is not None:
            with stopped(process):
                pass


@contextmanager
def reading(git: Git) -> Iterator[Objects]:
    """The objects of git's repository."""
    objects = Objects(git)
    try:
        yield objects
    finally:
        with suppress(OSError):
            objects.close()


def _entries(data: bytes, id_size: int) -> Iterator[tuple[str, Entry]]:
    """A tree object's entries: mode, space, name, NUL, id. Raises GitFailed where it is broken."""
    at = 0
    while at < len(data):
        space, end = data.find(b" ", at), data.find(b"\0", at)
        if not at < space < end or end + id_size >= len(data):
            raise GitFailed("a tree of the repository is broken")
        name = os.fsdecode(data[space + 1 : end])
        identity = data[end + 1 : end + 1 + id_size].hex()
        yield name, Entry(data[at:space].decode("ascii", "replace"), identity)
        at = end + 1 + id_size
