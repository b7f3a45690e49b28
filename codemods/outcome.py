"""The vocabulary of every other module: what was found, what was decided, what would change.

A `Plan` is pure data. Whoever holds one can print it, turn it into a patch, write it to disk or
prove it, without looking at the tree again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class EditName(str, Enum):
    """The edits of the slot-mapping recipe, in the order they are reported."""

    KERNEL = "kernel"
    WARMUP = "warmup"
    WORKER = "worker"
    UNIT_TESTS = "unit-tests"


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
    ALREADY_PRESENT = "already-present"
    NO_KERNEL = "no-kernel"
    SUPERSEDED_UPSTREAM = "superseded-upstream"
    NO_TEST_MODULE = "no-test-module"
    UNPARSABLE = "unparsable"
    NO_ANCHOR = "no-anchor"
    AMBIGUOUS = "ambiguous"
    PARAMETER_MISSING = "parameter-missing"
    SIGNATURE_CHANGED = "signature-changed"
    NOT_LAUNCHED = "not-launched"
    NO_WARMUP_MODULE = "no-warmup-module"
    UNREADABLE = "unreadable"


class Verdict(str, Enum):
    """What the edits come to for the whole tree."""

    FIXABLE = "fixable"
    FIXED = "fixed"
    ALREADY_FIXED = "already-fixed"
    SUPERSEDED = "superseded"
    NOT_AFFECTED = "not-affected"
    REFUSED = "refused"


@dataclass(frozen=True)
class Outcome:
    """One edit's end.

    `file` is POSIX and relative to the tree's root, `line` counts from 1 in the file as it is
    after the edit; both are None where there is no file to point at.
    """

    edit: EditName
    status: Status
    reason: Reason
    detail: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class FileChange:
    """One file's bytes before and after; `path` is POSIX and relative to the tree's root."""

    path: str
    before: bytes
    after: bytes
    edits: tuple[EditName, ...]

    @property
    def sha256_before(self) -> str:
        return _sha256(self.before)

    @property
    def sha256_after(self) -> str:
        return _sha256(self.after)


def _sha256(data: bytes) -> str:
    import hashlib  # brings OpenSSL along, which a table on the screen does without

    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Tree:
    """Which tree a plan speaks of.

    `root` is the folder the user named; `package` the vLLM package relative to it (POSIX, "." when
    the root is the package); `version` and `commit` are None where the tree does not say.
    """

    root: Path
    package: str
    version: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Plan:
    """Everything the tool would do to a tree, and why; `changes` is sorted by path."""

    tree: Tree
    outcomes: tuple[Outcome, ...]
    changes: tuple[FileChange, ...]
    verdict: Verdict

    @property
    def refusals(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status is Status.REFUSED)


def verdict_of(outcomes: Iterable[Outcome]) -> Verdict:
    """Sum the edits up: one refusal refuses the tree, one edit makes it fixable."""
    seen = tuple(outcomes)
    statuses = {outcome.status for outcome in seen}
    reasons = {outcome.reason for outcome in seen}
    if Status.REFUSED in statuses:
        return Verdict.REFUSED
    if Status.EDIT in statuses:
        return Verdict.FIXABLE
    if Reason.SUPERSEDED_UPSTREAM in reasons:
        return Verdict.SUPERSEDED
    if Reason.NO_KERNEL in reasons or reasons == {Reason.NO_TEST_MODULE}:
        return Verdict.NOT_AFFECTED
    return Verdict.ALREADY_FIXED
