"""What a repository's index says of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codemods.engine.git import Git, GitFailed, opened
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


def is_left_out(path: Path) -> bool:
    """Whether git tracks a file that is not there because a sparse checkout leaves it out."""
    try:
        repository = Repository.around(path.parent)
        if repository is None or repository.top is None:
            return False
        name = path.relative_to(repository.top).as_posix()
        with opened(repository) as git:
            return any(entry.is_skipped for entry in entries(git, name))
    except (BrokenRepository, GitFailed, ValueError, OSError):
        return False
