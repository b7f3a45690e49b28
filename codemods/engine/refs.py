"""Which commits of a repository a user's refs and patterns name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from codemods.engine.checkout import UsageError
from codemods.engine.git import Git
from codemods.engine.objects import MissingObject, Objects

_TAGS = "refs/tags/"
_SPACES = ("refs/heads/", _TAGS, "refs/remotes/", "refs/")


@dataclass(frozen=True)
class Ref:
    """A ref as the user knows it, and the id of its commit."""

    name: str
    commit: str


def is_pattern(ref: str) -> bool:
    return any(letter in ref for letter in "*?[")


def resolved(git: Git, objects: Objects, wanted: Iterable[str]) -> tuple[Ref, ...]:
    """The refs that are named, in the order of the options, each once.

    A pattern such as `release/*` means every branch, tag and remote branch whose name it
    matches, sorted; its `*` matches slashes too. Raises UsageError for a name that leads to no
    commit and a pattern that matches nothing.
    """
    found: dict[str, Ref] = {}
    for name in wanted:
        # git takes a name and a line end as one question each.
        if not name or name.startswith("-") or not name.isprintable():
            raise UsageError(f"{name!a} is no git ref")
        refs = _matching(git, objects, name) if is_pattern(name) else [_one(objects, name)]
        found.update((ref.name, ref) for ref in refs if ref.name not in found)
    return tuple(found.values())


def _one(objects: Objects, name: str) -> Ref:
    try:
        return Ref(name, objects.commit(name))
    except MissingObject:
        raise UsageError(f"{name}: no such ref or commit in the repository") from None


def _matching(git: Git, objects: Objects, pattern: str) -> list[Ref]:
    names = list(_names(git))
    shown = Counter(short for _, short in names)
    found = []
    for full, short in sorted(names, key=lambda name: (name[1], name[0])):
        if not (fnmatchcase(short, pattern) or fnmatchcase(full, pattern)):
            continue
        try:
            commit = objects.commit(full)
        except MissingObject:
            if full.startswith(_TAGS):  # of a tree or a blob, such as a key
                continue
            raise UsageError(f"{full}: its commit is not in the repository") from None
        found.append(Ref(short if shown[short] == 1 else full, commit))
    if not found:
        raise UsageError(f"{pattern}: no ref of the repository matches")
    return found


def _names(git: Git) -> Iterator[tuple[str, str]]:
    """Each ref's full name and the short one that is shown, without refs that name others."""
    answer = os.fsdecode(git.ask("for-each-ref", "--format=%(refname) %(symref)"))
    for line in answer.splitlines():
        full, _, symbolic = line.partition(" ")
        if not symbolic:
            space = next(one for one in _SPACES if full.startswith(one))
            yield full, full.removeprefix(space)
