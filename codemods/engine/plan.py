"""The data that every other module works with: what was found, decided and would change.

A `Plan` is pure data. Whoever holds one can print it, turn it into a patch, write it to disk or
prove it, without looking at the tree again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Status(str, Enum):
    """What became of one edit."""

    EDIT = "edit"
    PRESENT = "present"
    NOT_NEEDED = "not-needed"
    REFUSED = "refused"


class Reason(str, Enum):
    """Why an edit has its status; the README explains each."""

    ADDED = "added"
    MERGED = "merged"
    REPLACED = "replaced"
    REMOVED = "removed"
    ALREADY_PRESENT = "already-present"
    NO_KERNEL = "no-kernel"
    SUPERSEDED_UPSTREAM = "superseded-upstream"
    NO_TEST_MODULE = "no-test-module"
    OUTSIDE_SPARSE_CHECKOUT = "outside-sparse-checkout"
    UNPARSABLE = "unparsable"
    NO_ANCHOR = "no-anchor"
    AMBIGUOUS = "ambiguous"
    PARAMETER_MISSING = "parameter-missing"
    SIGNATURE_CHANGED = "signature-changed"
    NOT_LAUNCHED = "not-launched"
    NOT_REACHED = "not-reached"
    HARMFUL = "harmful"
    NO_WARMUP_MODULE = "no-warmup-module"
    UNREADABLE = "unreadable"


class Verdict(str, Enum):
    """The result for the tree, of one recipe's edits or of all recipes'."""

    FIXABLE = "fixable"
    FIXED = "fixed"
    ALREADY_FIXED = "already-fixed"
    SUPERSEDED = "superseded"
    NOT_AFFECTED = "not-affected"
    REFUSED = "refused"


# A tree's verdict is the first of these that one of its recipes has.
WORST_FIRST = (
    Verdict.REFUSED,
    Verdict.FIXABLE,
    Verdict.FIXED,
    Verdict.ALREADY_FIXED,
    Verdict.SUPERSEDED,
    Verdict.NOT_AFFECTED,
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides for all of them."""
    found = set(verdicts)
    return next(verdict for verdict in WORST_FIRST if verdict in found)


@dataclass(frozen=True)
class Outcome:
    """What became of one edit, and why.

    `file` is POSIX and relative to the tree's root, `line` counts from 1 in the file as it is
    after the edit; both are None where there is no file to point at.
    """

    edit: str
    status: Status
    reason: Reason
    detail: str
    file: str | None = None
    line: int | None = None

    def moved(self, before: bytes, after: bytes) -> Outcome:
        """The outcome once its file is changed further; a refusal stays where the disk has it."""
        if self.line is None or self.status is Status.REFUSED:
            return self
        from codemods.engine.hunks import moved_line  # few trees have a file edited twice

        return replace(self, line=moved_line(self.line, before, after))


@dataclass(frozen=True)
class FileChange:
    """One file's bytes before and after; `path` is POSIX and relative to the tree's root.

    Files of a lower `rank` are written first; `mode` is git's, such as "100644".
    """

    path: str
    before: bytes
    after: bytes
    edits: tuple[str, ...]
    rank: int = 0
    mode: str = "100644"

    @property
    def sha256_before(self) -> str:
        return _sha256(self.before)

    @property
    def sha256_after(self) -> str:
        return _sha256(self.after)


def _sha256(data: bytes) -> str:
    import hashlib  # loads OpenSSL, which only --json needs

    return hashlib.sha256(data).hexdigest()


class Tree(NamedTuple):
    """Which tree a plan is for.

    `root` is the folder the user named; `package` the vLLM package relative to it (POSIX, "." when
    the root is the package); `version` and `commit` are None where the tree does not say; `ref` is
    the git ref that was read in the place of the files on the disk.
    """

    root: Path
    package: str
    version: str | None = None
    commit: str | None = None
    ref: str | None = None


class About(NamedTuple):
    """A recipe's own words: `title` is a heading, `subject` and `origin` are a patch's.

    `origin` is the URL of the upstream issue or pull request that the change comes from.
    """

    title: str
    subject: str
    origin: str


@dataclass(frozen=True)
class RecipePlan:
    """What one recipe would do to a tree, and in `why` one sentence on whether it needs it.

    `changes` is sorted by path and starts from the tree as the recipes before this one leave it.
    `options` are the command's that decided more than `recipe` alone, such as `--skip unit-tests`.
    `left_out` names the edits that were not asked for: the verdict says nothing of them.
    """

    recipe: str
    about: About
    verdict: Verdict
    why: str
    outcomes: tuple[Outcome, ...]
    changes: tuple[FileChange, ...] = ()
    options: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def refusals(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status is Status.REFUSED)

    def in_force(self, edit: str) -> bool:
        """Whether the tree has the edit's effect once the plan is carried out."""
        return any(
            outcome.edit == edit and outcome.status in (Status.EDIT, Status.PRESENT)
            for outcome in self.outcomes
        )


@dataclass(frozen=True)
class Plan:
    """Everything the tool would do to a tree, a part for each recipe in the order they run."""

    tree: Tree
    recipes: tuple[RecipePlan, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(one.verdict for one in self.recipes)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(outcome for one in self.recipes for outcome in one.outcomes)

    @property
    def refusals(self) -> tuple[Outcome, ...]:
        return tuple(outcome for one in self.recipes for outcome in one.refusals)

    @property
    def named_files(self) -> tuple[str, ...]:
        """Every file that the plan names, changed or not."""
        named = [outcome.file for outcome in self.outcomes if outcome.file is not None]
        return tuple(dict.fromkeys([*named, *(change.path for change in self.changes)]))

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """Each file's bytes before the first recipe and after the last; empty when refused."""
        if self.refusals:
            return ()
        return merged(change for one in self.recipes for change in one.changes)

    def carried_out(self) -> Plan:
        """The plan once its changes are made: what was fixable is fixed."""
        return replace(
            self,
            recipes=tuple(
                replace(one, verdict=Verdict.FIXED) if one.verdict is Verdict.FIXABLE else one
                for one in self.recipes
            ),
        )


def merged(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Successive changes of the same files as one change a file, sorted by path."""
    found: dict[str, FileChange] = {}
    for change in changes:
        first = found.get(change.path, change)
        edits = tuple(dict.fromkeys((*first.edits, *change.edits)))
        rank = max(first.rank, change.rank)
        found[change.path] = replace(first, after=change.after, edits=edits, rank=rank)
    return tuple(found[path] for path in sorted(found))


def verdict_of(outcomes: Iterable[Outcome], means: Mapping[Reason, Verdict]) -> Verdict:
    """Sum a recipe's edits up: one refusal refuses the tree, one edit makes it fixable.

    `means` says which reasons decide the verdict of a tree in which nothing is to be done.
    """
    seen = tuple(outcomes)
    statuses = {outcome.status for outcome in seen}
    decided = {means[outcome.reason] for outcome in seen if outcome.reason in means}
    if Status.REFUSED in statuses:
        return Verdict.REFUSED
    if Verdict.SUPERSEDED in decided:
        return Verdict.SUPERSEDED
    if Status.EDIT in statuses:
        return Verdict.FIXABLE
    if decided:
        return worst(decided)
    there = any(outcome.reason is Reason.ALREADY_PRESENT for outcome in seen)
    return Verdict.ALREADY_FIXED if there else Verdict.NOT_AFFECTED
