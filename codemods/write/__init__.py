"""A plan onto disk: every file or none, without a journal.

Each new content goes to a temporary file beside its target and is renamed over it, so a reader sees
the old file or the new one, and a file with other hard links is replaced, never written through.
The caller gives the files in an order such that after each file is written, the tree works. So a
killed write leaves a tree that works, and a second write completes it. A failure or a signal undoes
the renames, the last one first, so that a kill in between leaves a tree that works too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codemods.engine.plan import FileChange
from codemods.write.files import create_like, keep_old, read_regular
from codemods.write.folders import Busy, locked, remove, remove_stale, sync_folder, temporary
from codemods.write.signals import Deferred, deferred

__all__ = ["WriteFailed", "remove_leftovers", "write"]

_UNTOUCHED = "nothing was written"


class WriteFailed(Exception):
    """One line for stderr: what failed, where, and in what state the files are."""


class _Failure(Exception):
    """What went wrong with which file; says nothing of the state of the files."""


@dataclass(frozen=True)
class _File:
    """One file of a write.

    `path` is the plan's name of it, `target` the same free of symbolic links. `new` and `old` are
    temporary files beside it: what it will be, and a second name of what it was.
    """

    path: str
    target: Path
    before: bytes
    after: bytes
    new: Path
    old: Path


def write(root: Path, changes: Sequence[FileChange]) -> None:
    """Replace the files of a tree in the order of `changes`, all of them or none.

    Raises WriteFailed when a file is not as the plan knows it, is no regular file inside the tree,
    or cannot be replaced with its owner, group and mode kept; every file is then as it was, unless
    the line says otherwise. SIGINT, SIGTERM and SIGHUP before the last rename are such a failure;
    after it the write ends first and the signal has its usual effect then.
    """
    try:
        files = _files(Path(os.path.realpath(root)), changes)
        with deferred() as signals, locked({file.target.parent for file in files}):
            _replace_all(files, signals)
    except (_Failure, Busy) as failure:
        raise WriteFailed(f"{failure}; {_UNTOUCHED}") from None


def remove_leftovers(root: Path, paths: Sequence[str]) -> None:
    """Remove the temporary files that killed writes left beside these files of a tree.

    Those of a write that is at work stay. What cannot be removed is left for the next time.
    """
    real = Path(os.path.realpath(root))
    folders = {Path(os.path.realpath(real / path)).parent for path in paths}
    remove_stale(folder for folder in folders if folder.is_relative_to(real))


def _files(root: Path, changes: Sequence[FileChange]) -> list[_File]:
    files: list[_File] = []
    for change in changes:
        if change.before == change.after:
            continue
        with _path_in_errors(change.path):
            target = Path(os.path.realpath(root / change.path, strict=True))
        if not target.is_relative_to(root):
            raise _Failure(f"{change.path} is a symbolic link out of {root}")
        if any(target == file.target for file in files):
            raise _Failure(f"{change.path} is the same file as another of the plan")
        new, old = temporary(target.parent), temporary(target.parent)
        files.append(_File(change.path, target, change.before, change.after, new, old))
    return files


def _replace_all(files: Sequence[_File], signals: Deferred) -> None:
    renamed: list[_File] = []
    try:
        for file in files:
            _compare(file)
        for file in files:
            signals.check()
            _prepare(file, is_last=file is files[-1])
        for file in files:
            _compare(file)
            signals.check()
            _rename(file)
            renamed.append(file)
            sync_folder(file.target.parent)
    except BaseException as failure:
        state = _put_back(renamed) if renamed else _UNTOUCHED
        raise WriteFailed(f"{str(failure) or type(failure).__name__}; {state}") from failure
    finally:
        for file in files:
            remove(file.new)
            remove(file.old)


def _compare(file: _File) -> None:
    with _path_in_errors(file.path):
        content = read_regular(file.target, len(file.before) + 1, os.O_RDWR)
    if content != file.before:
        raise _Failure(f"{file.path} has changed since it was read")


def _prepare(file: _File, *, is_last: bool) -> None:
    with _path_in_errors(file.path):
        create_like(file.target, file.new, file.after)
        if not is_last:  # after the last rename nothing is left to fail, so it is never undone
            keep_old(file.target, file.old, file.before)


def _rename(file: _File) -> None:
    try:
        os.replace(file.new, file.target)
    except OSError as error:
        # A network file system may report an error for a rename that it has made.
        if not _is_rewritten(file):
            raise _Failure(f"cannot write {file.path}: {error.strerror}") from None


def _is_rewritten(file: _File) -> bool:
    with _path_in_errors(file.path):
        return read_regular(file.target, len(file.after) + 1, os.O_RDONLY) == file.after


def _put_back(renamed: list[_File]) -> str:
    """Undo the renames, the last one first; returns in words what came of it.

    Stops at a file that cannot be put back: it may need those that were renamed before it.
    """
    try:
        while renamed:
            file = renamed[-1]
            if not _is_rewritten(file):
                raise _Failure(f"{file.path} has changed since it was rewritten")
            with _path_in_errors(file.path):
                os.replace(file.old, file.target)
            sync_folder(file.target.parent)
            renamed.pop()
    except _Failure as why:
        names = ", ".join(file.path for file in renamed)
        return f"restoring failed: {why}; still rewritten: {names}; the next apply writes the rest"
    return "every file is restored"


@contextmanager
def _path_in_errors(path: str) -> Iterator[None]:
    """Name the file of an error of the operating system."""
    try:
        yield
    except OSError as error:
        raise _Failure(f"cannot write {path}: {error.strerror}") from None
