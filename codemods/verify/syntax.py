"""Proof 1: what is written is Python, a second rewrite does nothing, nothing else is touched."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
import warnings
from pathlib import Path, PurePosixPath

from codemods.outcome import FileChange, Plan, Status
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
    from codemods.checkout import Checkout
    from codemods.plan import make_plan

    if not plan.changes:
        return None
    edits = frozenset(outcome.edit for outcome in plan.outcomes)
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
        root = Path(folder) / plan.tree.root.resolve().name
        overlay(plan.tree.root.resolve(), root, plan.changes)
        again = make_plan(Checkout.find(root, plan.tree.package), only=edits)
    if again.refusals:
        return f"a second rewrite is refused: {again.refusals[0].detail}"
    if again.changes:
        return f"a second rewrite changes {', '.join(change.path for change in again.changes)}"
    return None


def overlay(root: Path, copy: Path, changes: tuple[FileChange, ...]) -> None:
    """The tree at `root` again at `copy`, with the changes made; whatever stays is a link."""
    after = {PurePosixPath(change.path): change.after for change in changes}
    folders = {PurePosixPath("."), *(parent for path in after for parent in path.parents)}
    for folder in sorted(folders):
        (copy / folder).mkdir(parents=True, exist_ok=True)
        for entry in os.scandir(root / folder) if (root / folder).is_dir() else ():
            path = folder / entry.name
            if path not in after and path not in folders:
                (copy / path).symlink_to(root / path)
    for path, data in after.items():
        (copy / path).write_bytes(data)
