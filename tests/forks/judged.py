"""Plans a tree, and lets no test forget what must hold of every plan."""

from __future__ import annotations

import difflib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Verdict
from codemods.engine.planning import make_plan
from tests.forks import running, text, trace
from tests.forks.trees import WORKER, Tree

DISMISSED = (Verdict.SUPERSEDED, Verdict.NOT_AFFECTED)
UNCHANGED = (*DISMISSED, Verdict.REFUSED, Verdict.ALREADY_FIXED)


@dataclass(frozen=True)
class Judged:
    """What the tool decided, the tree after it, and everything wrong with that."""

    plan: Plan
    before: Tree
    after: Tree
    faults: tuple[str, ...]

    @property
    def diff(self) -> str:
        return unified(self.before, self.after)


def plan_of(tree: Tree, package: str | None = None) -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        root = tree.write_to(Path(folder))
        plan = make_plan(Checkout.find(root, package), registry.chosen(()))
        left = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }
    assert left == dict(tree.files), "planning wrote to the tree"
    return plan


def judged(tree: Tree, *, again: bool = True, runs: bool = True) -> Judged:
    """The tool's plan for a tree, judged.

    `again` also asks that a second run changes nothing; `runs` is for trees that a machine without
    a GPU can run whole, which a real release's few files are not.
    """
    plan = plan_of(tree)
    after = tree.changed({change.path: change.after for change in plan.changes})
    found = _bookkeeping(plan, tree)
    if plan.verdict in UNCHANGED:
        found += ["it refused and changed bytes"] if plan.changes else []
        found += _untouched_faults(plan, tree) if runs else []
    else:
        found += text.faults(tree.files, after.files)
        found += trace.faults(tree.inside[WORKER], after.inside[WORKER])
        found += running.faults(tree, after) if runs else []
        if again and not found:
            second = plan_of(after)
            if second.verdict is not Verdict.ALREADY_FIXED or second.changes:
                found.append(f"a second run says {second.verdict.value}")
    return Judged(plan, tree, after, tuple(found))


def _bookkeeping(plan: Plan, tree: Tree) -> list[str]:
    found = []
    for change in plan.changes:
        if tree.files.get(change.path) != change.before:
            found.append(f"{change.path}: `before` is not the file")
        if change.before == change.after:
            found.append(f"{change.path} is listed and does not change")
    if [change.path for change in plan.changes] != sorted(change.path for change in plan.changes):
        found.append("changes are not sorted")
    return found


def _untouched_faults(plan: Plan, tree: Tree) -> list[str]:
    if plan.verdict is Verdict.ALREADY_FIXED:
        return running.fixed_faults(tree)
    return running.dismissed_faults(tree) if plan.verdict in DISMISSED else []


def unified(before: Tree, after: Tree) -> str:
    """The difference as a person reads it; CRLF is shown as LF, `text` judges line ends."""
    out: list[str] = []
    for name in sorted(before.files):
        was, now = before.files[name], after.files[name]
        if was != now:
            lines = difflib.unified_diff(_read(was), _read(now), f"a/{name}", f"b/{name}")
            out += lines
    return "".join(line if line.endswith("\n") else line + "\n" for line in out)


def _read(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").splitlines(keepends=True)
