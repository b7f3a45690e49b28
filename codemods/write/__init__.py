"""A plan onto disk: every file or none.

Each new content goes to a temporary file beside its target and is renamed over it, so a reader sees
the old file or the new one, and a file with other hard links is replaced, never written through.
A failure or a signal on the way puts every file back. A kill leaves a journal (`journal.py`) by
which the next run undoes or completes the write (`recovery.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from codemods.engine.plan import FileChange
from codemods.write.files import create_like, keep_old, read_writable
from codemods.write.journal import (
    TEMPORARY,
    Entry,
    Journal,
    WriteFailed,
    discard,
    load,
    locked,
    shown,
    store,
)
from codemods.write.recovery import clear, describe, go_back, pending, recover, states, sync
from codemods.write.signals import Deferred, Interrupted, deferred

__all__ = ["Journal", "WriteFailed", "describe", "pending", "recover", "write"]

_UNTOUCHED = "nothing was written"


class _Refused(Exception):
    """A file is not what the plan was made from; says which and how."""


def write(root: Path, changes: Iterable[FileChange]) -> None:
    """Replace the plan's files in its tree, all of them or none.

    Raises WriteFailed when a file is not as the plan knows it, is no regular file inside the tree,
    or cannot be replaced with its owner, group and mode kept; every file is then as it was, unless
    the line says otherwise. SIGINT, SIGTERM and SIGHUP before the last rename are such a failure;
    after it the write ends first and the signal has its usual effect then.
    """
    root = Path(os.path.realpath(root))
    changes = tuple(change for change in changes if change.before != change.after)
    if not changes:
        return
    try:
        journal = Journal(root, _entries(root, changes))
    except _Refused as refusal:
        raise WriteFailed(f"{refusal}; {_UNTOUCHED}") from None
    with deferred() as signals:
        try:
            with locked(root) as lock:
                _write_locked(journal, changes, lock, signals)
        except OSError as error:
            raise WriteFailed(
                f"cannot keep a journal in {shown(root)}: {error.strerror}; {_UNTOUCHED}"
            ) from None


def _entries(root: Path, changes: tuple[FileChange, ...]) -> tuple[Entry, ...]:
    token = os.urandom(8).hex()
    entries: dict[str, Entry] = {}
    for change in changes:
        try:
            real = Path(os.path.realpath(root / change.path, strict=True))
        except OSError as error:
            raise _Refused(f"cannot read {shown(change.path)}: {error.strerror}") from None
        if not real.is_relative_to(root):
            raise _Refused(f"{shown(change.path)} is a symbolic link out of {shown(root)}")
        path = real.relative_to(root).as_posix()
        if path in entries:
            raise _Refused(f"{shown(change.path)} is the same file as another of the plan")
        entries[path] = Entry(root, path, change.sha256_before, change.sha256_after, token)
    return tuple(entries.values())


def _compare(entry: Entry, change: FileChange) -> None:
    try:
        content = read_writable(entry.target, len(change.before) + 1)
    except OSError as error:
        raise _Refused(f"cannot write {shown(entry.path)}: {error.strerror}") from None
    if content != change.before:
        raise _Refused(f"{shown(entry.path)} has changed since it was read")


def _write_locked(
    journal: Journal, changes: tuple[FileChange, ...], lock: int, signals: Deferred
) -> None:
    if load(journal.root, lock) is not None:
        raise WriteFailed(
            f"an earlier apply on {shown(journal.root)} was interrupted: "
            f"it must be undone or completed first; {_UNTOUCHED}"
        )
    try:
        signals.check()
        for entry, change in zip(journal.entries, changes, strict=True):
            _compare(entry, change)
        _refuse_leftovers(journal)
        store(journal, lock)
    except (_Refused, Interrupted) as failure:
        discard(journal.root)
        raise WriteFailed(f"{failure}; {_UNTOUCHED}") from None
    except BaseException:
        discard(journal.root)
        raise
    try:
        _replace_all(journal, changes, signals)
    except (_Refused, Interrupted) as failure:
        raise _put_back(journal, str(failure)) from None
    except BaseException as failure:
        put_back = _put_back(journal, type(failure).__name__)
        if put_back.restored:
            raise
        raise put_back from failure
    try:
        clear(journal)
    except OSError as error:
        raise WriteFailed(
            f"every file is rewritten, but what the write left beside them cannot be removed "
            f"({error.strerror}); the next apply removes it",
            restored=False,
        ) from None


def _refuse_leftovers(journal: Journal) -> None:
    """Our temporaries without our journal: a write on a folder above or below this root."""
    for folder in journal.folders:
        for name in sorted(os.listdir(folder)):
            if TEMPORARY.search(name):
                raise _Refused(
                    f"{shown(folder / name)} is of an apply at work or interrupted "
                    "on another TREE; apply on that TREE again, or remove it"
                )


def _replace_all(journal: Journal, changes: tuple[FileChange, ...], signals: Deferred) -> None:
    pairs = tuple(zip(journal.entries, changes, strict=True))
    try:
        for entry, change in pairs:
            signals.check()
            create_like(entry.target, entry.new, change.after)
            keep_old(entry.target, entry.old, change.before)
        sync(journal)
        for entry, change in pairs:
            _compare(entry, change)
            signals.check()
            os.replace(entry.new, entry.target)
        sync(journal)
    except OSError as error:
        raise _Refused(f"cannot write {shown(entry.path)}: {error.strerror}") from None


def _put_back(journal: Journal, failure: str) -> WriteFailed:
    try:
        count = go_back(journal)
    except (OSError, WriteFailed) as error:
        why = error.strerror if isinstance(error, OSError) else "a file has changed meanwhile"
        return WriteFailed(
            f"{failure}; and restoring failed ({why}): {states(journal)}; "
            "the next apply on the same TREE tries again",
            restored=False,
        )
    return WriteFailed(f"{failure}; {'every file is restored' if count else _UNTOUCHED}")
