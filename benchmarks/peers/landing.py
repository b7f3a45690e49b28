"""How often the fix ends up right, who says so where it is not, and who refuses."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any

from .attempts import Attempt
from .judging import Case, judge, stopped
from .subjects import Subject


class Outcome(str, Enum):
    """What became of a tree that needs the fix, and of one that needs nothing."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    UNTOUCHED = "untouched"
    CHANGED = "changed"


def outcome(attempt: Attempt, faults: Sequence[str]) -> Outcome:
    """Where the tree needs the fix: the exit code says success or not, the faults whether it is."""
    if not attempt.subject.in_need:
        return Outcome.CHANGED if attempt.changed else Outcome.UNTOUCHED
    if not attempt.succeeded:
        return Outcome.REFUSED
    return Outcome.WRONG if faults else Outcome.RIGHT


def results(attempts: Sequence[Attempt], jobs: int) -> list[dict[str, Any]]:
    """One entry for each attempt, for the JSON."""
    asked = [a for a in attempts if a.subject.in_need and a.succeeded]
    needless = [a for a in attempts if not a.subject.in_need and a.changed]
    with ThreadPoolExecutor(jobs) as pool:
        faults = judge([_case(attempt) for attempt in asked], pool)
        stops = stopped([_case(attempt) for attempt in needless], pool)
    found = dict(zip(map(id, asked), faults, strict=True))
    found |= {
        id(attempt): ["the engine does not start any more"]
        for attempt, stop in zip(needless, stops, strict=True)
        if stop
    }
    return [_entry(attempt, found.get(id(attempt), [])) for attempt in attempts]


def check_need(subjects: Sequence[Subject], jobs: int) -> None:
    """Have the judge agree about the trees as they are: those in need are wrong."""
    with ThreadPoolExecutor(jobs) as pool:
        needy = [subject for subject in subjects if subject.in_need]
        found = judge([Case(s.kind, s.package, s.root, s.root) for s in needy], pool)
    for subject, faults in zip(needy, found, strict=True):
        if not faults:
            raise RuntimeError(f"{subject.name} needs the fix, and the judge finds no fault")


def _case(attempt: Attempt) -> Case:
    subject = attempt.subject
    return Case(subject.kind, subject.package, subject.root, attempt.after)


def _entry(attempt: Attempt, faults: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "contender": attempt.contender,
        "tree": attempt.subject.name,
        "outcome": outcome(attempt, faults).value,
        "changed": len(attempt.changed),
        "exit": attempt.code,
    }
    if faults:
        entry["faults"] = list(faults) if attempt.changed else ["nothing was changed"]
    return entry
