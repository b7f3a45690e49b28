"""The `lint` proof: ruff finds no new fault in the changed files, and no line gains white space."""

from __future__ import annotations

from codemods.prove import white_space
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.ruff import Ruff, UnavailableError, ruff_for
from codemods.prove.subject import Subject

NAME = "lint"


def prove(subject: Subject, options: Options) -> Proof:
    """The row."""
    changes = subject.plan.changes
    figures: dict[str, int | float | str] = {"files": len(changes)}
    if not changes:
        return passed(NAME, "no file changes, so there is nothing to compare", **figures)
    worse = [line for change in changes for line in white_space.complaints(change)]
    paths = [change.path for change in changes]
    try:
        with ruff_for(subject.checkout, paths, options.timeout) as ruff:
            figures["own_settings"] = int(ruff.has_settings)
            worse += _new_complaints(ruff, subject, figures)
    except UnavailableError as reason:
        if not worse:
            return skipped(NAME, str(reason), **figures)
    if worse:
        return failed(NAME, "; ".join(worse), **figures)
    whose = "the tree's settings" if ruff.has_settings else "ruff's defaults, the tree has none"
    return passed(
        NAME,
        f"ruff finds nothing that was not there before ({whose}), nor stray white space",
        **figures,
    )


def _new_complaints(
    ruff: Ruff, subject: Subject, figures: dict[str, int | float | str]
) -> list[str]:
    worse: list[str] = []
    unformatted = 0
    for change in subject.plan.changes:
        if not ruff.is_formatted(change.path, change.before):
            unformatted += 1
        elif not ruff.is_formatted(change.path, change.after):
            worse.append(f"{change.path} is no longer as ruff format leaves it")
        new = ruff.complaints(change.path, change.after)
        new.subtract(ruff.complaints(change.path, change.before))
        worse += [f"{change.path}: {what}" for what, count in sorted(new.items()) if count > 0]
    figures["unformatted_before"] = unformatted
    return worse
