"""Which files of a tree have changes that git does not keep yet.

git is not asked for its status, which may run filters: the bytes on the disk are compared here with
what the index and the last commit have of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from codemods.engine.files import read_file
from codemods.engine.git import Git, GitFailed, GitMissing, opened
from codemods.engine.index import Indexed, entries
from codemods.engine.objects import Entry, MissingObject, Objects, TooLarge, reading
from codemods.engine.repository import BrokenRepository, Repository

# Attributes for which git keeps other bytes than are on the disk.
_CONVERTING = ("filter", "ident", "working-tree-encoding")


class GitUnsure(Exception):
    """The files are in a git work tree, and what git keeps of them is unknown: one clear line."""


def dirty_files(root: Path, paths: Iterable[str]) -> list[str]:
    """Those of `paths` (POSIX, relative to `root`) that have uncommitted changes, in their order.

    Each file is looked up in the innermost repository around it, so submodules, worktrees and
    repositories deeper down answer for themselves, and a symbolic link for the file it points to.
    A new file beside tracked ones counts; one in a folder of which git tracks nothing (a virtual
    environment inside a repository) or that git ignores does not, nor do line ends that git
    converts. Empty outside a repository and without git.

    Raises GitUnsure where it is unknown, or where git is set not to look at a file: to write is
    then the user's decision.
    """
    return [path for path in paths if _is_dirty(Path(os.path.realpath(root / path)))]


def _is_dirty(file: Path) -> bool:
    try:
        repository = Repository.around(file.parent)
        if repository is None or repository.top is None:
            return False
        name = file.relative_to(repository.top.resolve()).as_posix()
        with opened(repository) as git, reading(git) as objects:
            return _differs(git, objects, name, file)
    except GitMissing:
        return False
    except (BrokenRepository, GitFailed, MissingObject, TooLarge) as error:
        raise _unsure(file, str(error)) from None
    except OSError as error:
        raise _unsure(file, error.strerror or str(error)) from None


def _differs(git: Git, objects: Objects, name: str, file: Path) -> bool:
    found = list(entries(git, name))
    if not found:
        return _is_new(git, name)
    entry = found[0]
    if len(found) > 1 or entry.stage or not _is_committed(objects, entry):
        return True
    if not _is_as_indexed(git, entry, file):
        return True
    if entry.is_trusted or entry.is_skipped:
        mark = "skip-worktree" if entry.is_skipped else "assume-unchanged"
        raise _unsure(file, f"it is marked {mark}, so git will not see the change")
    return False


def _is_new(git: Git, name: str) -> bool:
    """Whether a file is beside tracked ones and is not ignored."""
    others = ("ls-files", "-z", "--others", "--exclude-standard", "--", name)
    folder = name.rpartition("/")[0] or "."
    beside = git.ask("ls-files", "-z", "--", folder)
    return bool(beside) and bool(git.ask(*others, work_tree=git.repository.top))


def _is_committed(objects: Objects, entry: Indexed) -> bool:
    try:
        here = Entry("40000", objects.root(objects.commit("HEAD")))
        for part in entry.name.split("/"):
            here = objects.tree(here.id)[part]
    except (MissingObject, KeyError):
        return False
    return (here.id, here.mode) == (entry.id, entry.mode)


def _is_as_indexed(git: Git, entry: Indexed, file: Path) -> bool:
    data = read_file(file)
    # Only the ends of lines differ: git converts them, or nothing of worth is lost.
    if entry.id in (_blob_id(data, entry.id), _blob_id(data.replace(b"\r\n", b"\n"), entry.id)):
        return True
    answer = git.ask(
        "check-attr", "-z", *_CONVERTING, "--", entry.name, work_tree=git.repository.top
    )
    values = dict(zip(answer.split(b"\0")[1::3], answer.split(b"\0")[2::3], strict=False))
    for attribute, value in values.items():
        if value not in (b"unspecified", b"unset"):
            raise GitFailed(f"its attribute {attribute.decode()} has git keep other bytes")
    return False


def _blob_id(data: bytes, like: str) -> str:
    """The name that git gives to these bytes, by the hash that `like` is of."""
    new = hashlib.sha1 if len(like) == hashlib.sha1().digest_size * 2 else hashlib.sha256
    return new(b"blob %d\0" % len(data) + data).hexdigest()


def _unsure(file: Path, why: str) -> GitUnsure:
    line = why if why.isprintable() else ascii(why)
    return GitUnsure(
        f"git cannot show whether {file.name} has uncommitted changes ({line}); "
        "find out with git, or pass --allow-dirty"
    )
