"""Each contender on each tree: what it did, twice, and what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from .contenders import Contender
from .git import commit_all, git
from .subjects import Subject


@dataclass(frozen=True)
class Attempt:
    """One run on a copy of a tree, which `after` holds as the run left it.

    `changed` are files of the tree, `left_behind` new ones that are no part of it (POSIX).
    `changed_again`: by a second run, after the first one's result was committed and its new files
    were removed; where the first run changed nothing there was none.
    """

    contender: str
    subject: Subject
    after: Path
    code: int
    changed: tuple[str, ...]
    left_behind: tuple[str, ...]
    changed_again: tuple[str, ...]

    @property
    def succeeded(self) -> bool:
        """Whether the contender says so itself."""
        return self.code == 0


def attempts(
    contenders: Sequence[Contender], subjects: Sequence[Subject], folder: Path, jobs: int
) -> list[Attempt]:
    pairs = list(product(contenders, subjects))
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda pair: attempt(*pair, folder), pairs))


def attempt(contender: Contender, subject: Subject, folder: Path) -> Attempt:
    tree = folder / contender.name.replace(" ", "_") / subject.name
    shutil.copytree(subject.root, tree, symlinks=True)
    code = contender.run(subject, tree)
    changed = _changed(tree)
    left_behind = _left_behind(tree)
    git(tree, "clean", "-fdqx")
    again: tuple[str, ...] = ()
    if code == 0 and changed:
        first = commit_all(tree, "first run")
        contender.run(subject, tree)
        again = _changed(tree)
        git(tree, "reset", "-q", "--hard", first)
        git(tree, "clean", "-fdqx")
    return Attempt(contender.name, subject, tree, code, changed, left_behind, again)


def _changed(tree: Path) -> tuple[str, ...]:
    names = git(tree, "diff", "HEAD", "--name-only", "-z").decode().split("\0")
    return tuple(name for name in names if name)


def _left_behind(tree: Path) -> tuple[str, ...]:
    names = git(tree, "ls-files", "--others", "-z").decode().split("\0")
    return tuple(name for name in names if name)


def by_contender(found: Sequence[Attempt]) -> Mapping[str, list[Attempt]]:
    """In the order in which they came."""
    sorted_out: dict[str, list[Attempt]] = {}
    for one in found:
        sorted_out.setdefault(one.contender, []).append(one)
    return sorted_out
