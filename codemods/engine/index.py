"""What a repository's index says of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codemods.engine.git import Git, GitFailed, GitSilent, opened
from codemods.engine.repository import BrokenRepository, Repository

_LINE = re.compile(r"(\S) (\d+) ([0-9a-f]+) (\d)\t(.*)", re.DOTALL)


@dataclass(frozen=True)
class Indexed:
    """A file of the index; `stage` is not 0 in the middle of a merge.

    `is_trusted` is git's assume-unchanged mark, `is_skipped` its skip-worktree mark: git looks at
    neither kind of file.
    """

    name: str
    mode: str
    id: str
    stage: int
    is_trusted: bool
    is_skipped: bool


def entries(git: Git, *names: str) -> Iterator[Indexed]:
    """The index's entries of these names, relative to the top; all of them without names."""
    answer = git.ask("ls-files", "-z", "--stage", "-v", "--", *names)
    for line in os.fsdecode(answer).split("\0"):
        if (found := _LINE.fullmatch(line)) is not None:
            tag, mode, identity, stage, name = found.groups()
            skipped = tag in "Ss"
            yield Indexed(name, mode, identity, int(stage), tag.islower(), skipped)


@dataclass(frozen=True)
class LeftOut:
    """The files that sparse checkouts leave out; a repository that is silent is asked once."""

    _silent: set[Repository] = field(default_factory=set)

    def has(self, path: Path) -> bool:
        """Whether git tracks a file that is not there because a sparse checkout leaves it out."""
        try:
            repository = Repository.around(path.parent)
            if repository is None or repository.top is None or repository in self._silent:
                return False
            return self._is_skipped(repository, path.relative_to(repository.top).as_posix())
        except (BrokenRepository, GitFailed, ValueError, OSError):
            return False

    def _is_skipped(self, repository: Repository, name: str) -> bool:
        try:
            with opened(repository) as git:
                return any(entry.is_skipped for entry in entries(git, name))
        except GitSilent:
            self._silent.add(repository)
            raise
