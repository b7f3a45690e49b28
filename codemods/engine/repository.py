"""Where a git repository lies, and what its own files say, read without git.

A tree's `.git` may come with a download: what it holds is data of the tree, read within limits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from codemods.engine.files import read_file, read_start

_SMALL = 1 << 16  # bytes; of HEAD, a ref, a .git file
_LARGE = 64 << 20  # of packed-refs
_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(rb"ref:\s*(refs/[^\x00\s]+)\s*")
_MAX_LINKS = 5  # git's own limit on refs that name refs
_FIRST_WITH_FLAGS = 3  # the first version of the index's format that has skip-worktree


class BrokenRepository(Exception):
    """A `.git` file names a repository that is not there; the message is one line."""


class Repository(NamedTuple):
    """A git repository.

    `top` is the folder of its work tree, None for a bare one. `folder` holds HEAD and the index;
    `common` holds refs and objects, and is another folder than `folder` in a linked worktree.
    """

    top: Path | None
    folder: Path
    common: Path

    @classmethod
    def at(cls, root: Path) -> Repository | None:
        """The repository whose work tree's top, or whose own folder, is `root`.

        Raises BrokenRepository.
        """
        dotted = root / ".git"
        if dotted.is_dir():
            return cls._of(root, dotted) or cls._bare(root)
        if os.path.lexists(dotted):
            return cls._named_by(dotted)
        return cls._bare(root)

    @classmethod
    def around(cls, path: Path) -> Repository | None:
        """The innermost repository with a work tree that holds `path`. Raises BrokenRepository."""
        real = Path(os.path.realpath(path))
        for folder in (real, *real.parents):
            if os.path.lexists(folder / ".git"):
                found = cls.at(folder)
                if found is not None and found.top is not None:
                    return found
        return None

    @classmethod
    def _of(cls, top: Path | None, folder: Path) -> Repository | None:
        common = folder / (_text(folder / "commondir") or ".")
        is_repository = (folder / "HEAD").exists() and (common / "objects").is_dir()
        return cls(top, folder.resolve(), common.resolve()) if is_repository else None

    @classmethod
    def _bare(cls, root: Path) -> Repository | None:
        return cls._of(None, root) if (root / "refs").is_dir() else None

    @classmethod
    def _named_by(cls, dotted: Path) -> Repository:
        text = _text(dotted) or ""
        prefix, _, path = text.partition(":")
        found = cls._of(dotted.parent, dotted.parent / path.strip()) if prefix == "gitdir" else None
        if found is None:
            raise BrokenRepository(f"{dotted} names no repository")
        return found

    def head(self) -> str | None:
        """The commit checked out; None where there is none, or git alone can read the refs."""
        text = _bytes(self.folder / "HEAD", _SMALL)
        for _ in range(_MAX_LINKS):
            if (found := _COMMIT.fullmatch(text.strip())) is not None:
                return found[0].decode()
            named = _REF.fullmatch(text)
            if named is None or b".." in named[1]:
                return None
            ref = os.fsdecode(named[1])
            text = _bytes(self.folder / ref, _SMALL) or _bytes(self.common / ref, _SMALL)
            text = text or self._packed(named[1])
        return None

    def _packed(self, ref: bytes) -> bytes:
        packed = _bytes(self.common / "packed-refs", _LARGE)
        found = re.search(rb"^([0-9a-f]+) " + re.escape(ref) + rb"$", packed, re.MULTILINE)
        return found[1] if found else b""

    def setting(self, name: str, values: Iterable[str]) -> str | None:
        """Which of `values` an extension of the repository's format has, such as sha256."""
        config = _bytes(self.common / "config", _SMALL).lower()
        for value in values:
            if re.search(rb"\b%b\s*=\s*\"?%b\b" % (name.encode(), value.encode()), config):
                return value
        return None


def head_commit(root: Path) -> str | None:
    """The commit checked out in the work tree whose top is `root`, None where it is no such."""
    if not os.path.lexists(root / ".git"):
        return None
    try:
        found = Repository.at(root)
    except BrokenRepository:
        return None
    return found.head() if found else None


def is_bare(root: Path) -> bool:
    """Whether a folder is a repository without a work tree."""
    try:
        found = Repository.at(root)
    except BrokenRepository:
        return False
    return found is not None and found.top is None


def may_be_tracked(path: Path) -> bool:
    """Whether a file is in a repository's work tree, also where the repository is broken."""
    try:
        return Repository.around(Path(os.path.realpath(path)).parent) is not None
    except (BrokenRepository, OSError):
        return True


def may_leave_out(path: Path) -> bool:
    """Whether the repository around a file has an index that can mark files as left out."""
    try:
        found = Repository.around(path.parent)
        if found is None:
            return False
        head = read_start(found.folder / "index", 8)
        shared = any(found.folder.glob("sharedindex.*"))
    except (BrokenRepository, OSError):
        return False
    return shared or int.from_bytes(head[4:8], "big") >= _FIRST_WITH_FLAGS


def _text(path: Path) -> str | None:
    data = _bytes(path, _SMALL)
    return os.fsdecode(data).strip("\n") if data else None


def _bytes(path: Path, limit: int) -> bytes:
    """What a file holds; nothing where it cannot be read."""
    try:
        return read_file(path, limit)
    except (OSError, ValueError):
        return b""
