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
from tests.forks import oracle
from tests.forks.trees import Tree

NO_HINTS = oracle.Hints()
UNCHANGED = (Verdict.REFUSED, Verdict.SUPERSEDED, Verdict.NOT_AFFECTED, Verdict.ALREADY_FIXED)


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


def judged(tree: Tree, hints: oracle.Hints = NO_HINTS, *, again: bool = True) -> Judged:
    """The tool's plan for a tree, judged; `again` also asks that a second run changes nothing."""
    plan = plan_of(tree)
    after = tree.changed({change.path: change.after for change in plan.changes})
    found = _bookkeeping(plan, tree)
    if plan.verdict in UNCHANGED:
        found += ["it refused and changed bytes"] if plan.changes else []
        found += _untouched_faults(plan, tree, hints)
    else:
        found += oracle.faults(tree.inside, after.inside, tree.package, hints)
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


def _untouched_faults(plan: Plan, tree: Tree, hints: oracle.Hints) -> list[str]:
    if plan.verdict is Verdict.ALREADY_FIXED:
        return oracle.state_faults(tree.inside, tree.package, hints)
    dismissed = plan.verdict in (Verdict.NOT_AFFECTED, Verdict.SUPERSEDED)
    if dismissed and oracle.affected(tree.inside, tree.package):
        return [f"{plan.verdict.value}, yet a kernel with num_tokens is launched"]
    return []


def unified(before: Tree, after: Tree) -> str:
    """The difference as a person reads it; CRLF is shown as LF, `oracle` judges line ends."""
    out: list[str] = []
    for name in sorted(before.files):
        was, now = before.files[name], after.files[name]
        if was != now:
            lines = difflib.unified_diff(_read(was), _read(now), f"a/{name}", f"b/{name}")
            out += lines
    return "".join(line if line.endswith("\n") else line + "\n" for line in out)


def _read(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").splitlines(keepends=True)
