"""The `syntax` proof: the result is Python, a second run changes nothing, all else is untouched."""

from __future__ import annotations

import difflib
import sys
import warnings

from codemods.engine import registry
from codemods.engine.checkout import UnreadableFile
from codemods.engine.plan import Plan, Status
from codemods.engine.planning import make_plan
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.subject import Subject, parse

NAME = "syntax"


def prove(subject: Subject, _: Options) -> Proof:
    plan = subject.plan
    figures = _figures(plan)
    for check in (_uncalled_for, _moved_on, _broken, _second_rewrite):
        complaint = check(subject)
        if complaint is not None:
            return failed(NAME, complaint, **figures)
    unreadable = [change.path for change in plan.changes if parse(change.before) is None]
    if unreadable:
        python = ".".join(map(str, sys.version_info[:2]))
        return skipped(
            NAME,
            f"Python {python} cannot read {', '.join(unreadable)} even as it was: use a newer one",
            **figures,
        )
    if not plan.changes:
        return passed(NAME, "nothing to change: the tree is taken as it is", **figures)
    return passed(
        NAME,
        "changed files compile, a second rewrite changes nothing, no other file changes",
        **figures,
    )


def _figures(plan: Plan) -> dict[str, int | float | str]:
    added = removed = 0
    for change in plan.changes:
        before, after = change.before.split(b"\n"), change.after.split(b"\n")
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag != "equal":
                added, removed = added + j2 - j1, removed + i2 - i1
    return {"files": len(plan.changes), "lines_added": added, "lines_removed": removed}


def _uncalled_for(subject: Subject) -> str | None:
    """A change that no edit of the plan names, or an edit that changes nothing."""
    for one in subject.plan.recipes:
        edits = {outcome.edit: outcome for outcome in one.outcomes if outcome.status is Status.EDIT}
        changed = {change.path for change in one.changes if change.before != change.after}
        for change in one.changes:
            if change.path not in changed:
                return f"{change.path} is listed but does not change"
            for name in change.edits:
                if name not in edits:
                    return f"{change.path} changes for the edit {name}, which is not to be made"
        for name, outcome in edits.items():
            if outcome.file is not None and outcome.file not in changed:
                return f"the edit {name} says it changes {outcome.file}, which stays as it was"
    return None


def _moved_on(subject: Subject) -> str | None:
    for change in subject.plan.changes:
        try:
            now = subject.checkout.read_named(change.path)
        except UnreadableFile:
            now = None
        if now != change.before:
            return f"{change.path} is no longer what the plan was made from"
    return None


def _broken(subject: Subject) -> str | None:
    for change in subject.plan.changes:
        if parse(change.before) is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(change.after, change.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return f"{change.path} does not compile after the rewrite: {error}"
    return None


def _second_rewrite(subject: Subject) -> str | None:
    """Plan the rewritten tree again: nothing may be left to change."""
    plan = subject.plan
    if not plan.changes:
        return None
    again = make_plan(
        subject.after.checkout,
        [registry.get(one.recipe) for one in plan.recipes],
        only=frozenset(outcome.edit for outcome in plan.outcomes),
    )
    if again.refusals:
        return f"a second rewrite is refused: {again.refusals[0].detail}"
    if again.changes:
        return f"a second rewrite changes {', '.join(change.path for change in again.changes)}"
    return None
