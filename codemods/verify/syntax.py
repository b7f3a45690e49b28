"""Proof 1: what is written is Python, a second rewrite does nothing, nothing else is touched."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from codemods.checkout import Checkout
from codemods.outcome import Plan, Status
from codemods.plan import make_plan
from codemods.verify.proof import Proof, failed, passed, skipped
from codemods.verify.subject import parse

NAME = "syntax"


def prove(plan: Plan) -> Proof:
    figures = _figures(plan)
    for check in (_uncalled_for, _moved_on, _broken, _second_rewrite):
        complaint = check(plan)
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
        return passed(NAME, "nothing to change: the tree is taken as it stands", **figures)
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


def _uncalled_for(plan: Plan) -> str | None:
    """A change that no edit of the plan names, or an edit that changes nothing."""
    edits = {outcome.edit: outcome for outcome in plan.outcomes if outcome.status is Status.EDIT}
    changed = {change.path for change in plan.changes if change.before != change.after}
    for change in plan.changes:
        if change.path not in changed:
            return f"{change.path} is listed but does not change"
        for name in change.edits:
            if name not in edits:
                return f"{change.path} changes for the edit {name.value}, which is not to be made"
    for name, outcome in edits.items():
        if outcome.file is not None and outcome.file not in changed:
            return f"the edit {name.value} says it changes {outcome.file}, which stays as it was"
    return None


def _moved_on(plan: Plan) -> str | None:
    for change in plan.changes:
        path = plan.tree.root / change.path
        now = path.read_bytes() if path.is_file() else b""
        if now != change.before:
            return f"{change.path} is no longer what the plan was made from"
    return None


def _broken(plan: Plan) -> str | None:
    for change in plan.changes:
        if parse(change.before) is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(change.after, change.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return f"{change.path} does not compile after the rewrite: {error}"
    return None


def _second_rewrite(plan: Plan) -> str | None:
    """Plan the rewritten tree again: nothing may be left to change."""
    if not plan.changes:
        return None
    made = {change.path: change.after for change in plan.changes}
    rewritten = Rewritten(plan.tree.root, plan.tree.package, made)
    again = make_plan(rewritten, only=frozenset(outcome.edit for outcome in plan.outcomes))
    if again.refusals:
        return f"a second rewrite is refused: {again.refusals[0].detail}"
    if again.changes:
        return f"a second rewrite changes {', '.join(change.path for change in again.changes)}"
    return None


@dataclass(frozen=True)
class Rewritten(Checkout):
    """A checkout that reads as the plan would leave it; nothing is written."""

    made: Mapping[str, bytes]

    def read(self, relative: str) -> bytes | None:
        made = self.made.get(self.name(relative))
        return super().read(relative) if made is None else made
