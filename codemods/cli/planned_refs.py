"""From `--ref` to a plan for each commit, read from the repository's objects."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.cli.planned import Asked, Planned
from codemods.engine.checkout import AmbiguousPackage, Checkout, UnreadableFile, UsageError
from codemods.engine.commits import CommitFiles
from codemods.engine.git import GitFailed, opened
from codemods.engine.objects import Objects, reading
from codemods.engine.plan import Reason, Tree
from codemods.engine.refs import Ref, is_pattern, resolved
from codemods.engine.repository import BrokenRepository, Repository


@dataclass(frozen=True)
class _Decided:
    """A commit's files and what was decided for them."""

    files: CommitFiles
    planned: Planned


def are_several(options: argparse.Namespace) -> bool:
    """Whether the options ask for more than one tree, or for as many as match a pattern."""
    return len(options.ref) > 1 or any(map(is_pattern, options.ref))


@contextmanager
def planned_refs(options: argparse.Namespace) -> Iterator[tuple[Planned, ...]]:
    """A plan for each ref; their checkouts can be read inside the block.

    Refs for which the repository gives the same answers are decided once. Raises UsageError.
    """
    if options.release is not None:
        raise UsageError("name a --ref of TREE or a --release, not both")
    asked = Asked.by(options)
    root = Path(options.tree or ".")
    several = are_several(options)
    try:
        with opened(_repository(root)) as git, reading(git) as objects:
            decided: list[_Decided] = []
            for ref in resolved(git, objects, options.ref):
                decided.append(_decide(ref, root, objects, asked, decided, several))
            yield tuple(one.planned for one in decided)
    except GitFailed as error:
        raise UsageError(str(error)) from None


def _repository(root: Path) -> Repository:
    if not root.is_dir():
        raise UsageError(f"{root}: {'not a folder' if root.exists() else 'no such folder'}")
    try:
        found = Repository.at(root)
    except BrokenRepository as error:
        raise UsageError(str(error)) from None
    if found is None:
        raise UsageError(
            f"{root}: neither the top of a git repository nor a bare one, which --ref needs"
        )
    return found


def _decide(
    ref: Ref, root: Path, objects: Objects, asked: Asked, known: list[_Decided], several: bool
) -> _Decided:
    name = root.resolve().name.removesuffix(".git")
    files = CommitFiles(objects, objects.root(ref.commit), name)
    for one in known:
        if files.answers_as(one.files):
            return _Decided(one.files, _renamed(one.planned, ref, files))
    tree = Tree(root, ".", None, ref.commit, ref.name)
    try:
        checkout = Checkout.find_in(files, root, asked.package)
        planned = asked.decide(replace(checkout, ref=ref.name, commit=ref.commit))
    except AmbiguousPackage as error:
        planned = asked.refuse(tree, Reason.AMBIGUOUS, str(error))
    except UnreadableFile as error:
        planned = asked.refuse(tree, Reason.UNREADABLE, str(error))
    except UsageError as error:
        if not several:
            raise UsageError(f"{ref.name}: {error}") from None
        planned = asked.refuse(tree, Reason.NO_ANCHOR, str(error))
    return _Decided(files, planned)


def _renamed(planned: Planned, ref: Ref, files: CommitFiles) -> Planned:
    """What was decided for another commit whose files are the same."""
    tree = planned.plan.tree._replace(ref=ref.name, commit=ref.commit)
    checkout = replace(planned.checkout, source=files, ref=ref.name, commit=ref.commit)
    return Planned(replace(planned.plan, tree=tree), checkout)
