"""Back to what was, or on to what was meant: both from what lies on disk.

What the files hold decides, not what a process remembers, so a failed write, a killed one and a
killed recovery all end here. The order of a write makes it readable: `.new` is made, then `.old`;
all files have both before the first rename; the rename takes `.new` away; the `.old` go last.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from codemods.write import journal as journals
from codemods.write.files import digest
from codemods.write.journal import Entry, Journal, WriteFailed, shown
from codemods.write.signals import deferred


class Side(Enum):
    """What a file of an interrupted write is, in words for the user."""

    OLD = "is as it was"
    NEW = "is rewritten"
    CHANGED_OLD = "was not rewritten, and has changed since"
    CHANGED_NEW = "was rewritten, and has changed since"
    CHANGED = "has changed since"


_OLD_SIDE = (Side.OLD, Side.CHANGED_OLD, Side.CHANGED)
_NEW_SIDE = (Side.NEW, Side.CHANGED_NEW, Side.CHANGED)


@dataclass(frozen=True)
class Found:
    """Where one file of an interrupted write stands."""

    entry: Entry
    side: Side

    def can_go_back(self) -> bool:
        if self.side is Side.NEW:
            return digest(self.entry.old) == self.entry.before
        return self.side in _OLD_SIDE

    def can_go_on(self) -> bool:
        if self.side is Side.OLD:
            return digest(self.entry.new) == self.entry.after
        return self.side in _NEW_SIDE


def _look(journal: Journal) -> tuple[Found, ...]:
    return tuple(Found(entry, _side(entry)) for entry in journal.entries)


def _side(entry: Entry) -> Side:
    content = digest(entry.target)
    if content == entry.before:
        return Side.OLD
    if content == entry.after:
        return Side.NEW
    if os.path.lexists(entry.new):
        return Side.CHANGED_OLD
    return Side.CHANGED_NEW if os.path.lexists(entry.old) else Side.CHANGED


def states(journal: Journal) -> str:
    """Each file and what it is, as one line."""
    try:
        return _sentence(_look(journal))
    except OSError as error:
        return f"the files cannot be read ({error.strerror})"


def _sentence(found: Iterable[Found]) -> str:
    return ", ".join(f"{shown(file.entry.path)} {file.side.value}" for file in found)


def go_back(journal: Journal) -> int:
    """Make every file what it was, take the temporaries and the journal away.

    Returns how many files had to be put back. Raises WriteFailed, touching nothing, when a file has
    changed in between; OSError when the disk will not have it. The caller holds the lock.
    """
    found = _look(journal)
    if not all(file.can_go_back() for file in found):
        raise _stuck(journal)
    rewritten = [file.entry for file in found if file.side is Side.NEW]
    for entry in rewritten:
        os.replace(entry.old, entry.target)
    sync(journal)
    clear(journal)
    return len(rewritten)


def _go_on(journal: Journal, found: tuple[Found, ...]) -> None:
    for file in found:
        if file.side is Side.OLD:
            os.replace(file.entry.new, file.entry.target)
    sync(journal)
    clear(journal)


def clear(journal: Journal) -> None:
    """Take the temporaries away, then, when that is durable, the journal.

    The renames must be durable by then: after this nothing can undo them.
    """
    for entry in journal.entries:
        for temporary in (entry.new, entry.old):
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(temporary)
    sync(journal)
    journals.discard(journal.root)


def sync(journal: Journal) -> None:
    """Make durable what happened to names in the folders of a write."""
    for folder in journal.folders:
        with suppress(FileNotFoundError, NotADirectoryError):
            journals.sync_folder(folder)


def _stuck(journal: Journal) -> WriteFailed:
    return WriteFailed(
        f"an interrupted apply can be neither undone nor completed: {states(journal)}; nothing was "
        f"touched: set the files right (originals: .*.vllm-codemods-{journal.entries[0].token}.old "
        f"beside them), then remove those and {shown(journal.root / journals.NAME)}",
        restored=False,
    )


def pending(root: Path) -> Journal | None:
    """The write that was killed in this tree, if there is one; only looks, never writes.

    None too while another process is writing. Raises WriteFailed for a journal that cannot be read
    or that this tool did not write.
    """
    root = Path(os.path.realpath(root))
    try:
        return journals.peek(root)
    except OSError as error:
        raise WriteFailed(f"cannot read {shown(root / journals.NAME)}: {error.strerror}") from None


def describe(journal: Journal) -> str:
    """One line for those who only look: what was found, and what ends it."""
    return (
        f"an apply on {shown(journal.root)} was interrupted: {states(journal)}; "
        "`vllm-codemods apply` on the same TREE undoes or completes it"
    )


def recover(root: Path) -> str:
    """End a write that was killed: completed when every file had been replaced, else undone.

    Returns one line saying which, "" when there was nothing to do. Files that someone changed since
    are left as they are; when they allow neither way, WriteFailed says so and nothing is touched.
    """
    root = Path(os.path.realpath(root))
    if not os.path.lexists(root / journals.NAME):
        return ""
    try:
        with deferred(), journals.locked(root) as lock:
            journal = journals.load(root, lock)
            if journal is None:
                journals.discard(root)
                return ""
            return _end(journal)
    except OSError as error:
        where = f": {shown(os.fsdecode(error.filename))}" if error.filename else ""
        raise WriteFailed(
            f"cannot end an interrupted apply on {shown(root)}: {error.strerror}{where}",
            restored=False,
        ) from None


def _end(journal: Journal) -> str:
    found = _look(journal)
    if all(file.side in _NEW_SIDE for file in found):
        sync(journal)
        clear(journal)
        done = "completed"
    elif all(file.can_go_back() for file in found):
        go_back(journal)
        done = "undone"
    elif all(file.can_go_on() for file in found):
        _go_on(journal, found)
        done = "completed"
    else:
        raise _stuck(journal)
    return f"an interrupted apply was found and {done}: {_sentence(_look(journal))}"
