"""A plan made by hand, of a recipe that is nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codemods.engine.plan import About, FileChange, Outcome, Plan, RecipePlan, Tree, Verdict

RECIPE = "made-up"
ABOUT = About("Made-up fix", "Make the fix up", "https://example.invalid/issues/7")
WHY = "Nothing fixes it."
TREE = Tree(Path("tree"), "vllm")


def plan_of(
    outcomes: Iterable[Outcome] = (),
    changes: Iterable[FileChange] = (),
    *,
    verdict: Verdict = Verdict.FIXABLE,
    tree: Tree = TREE,
    why: str = WHY,
    left_out: Iterable[str] = (),
) -> Plan:
    """A plan of that one recipe."""
    made = (tuple(outcomes), tuple(changes))
    one = RecipePlan(RECIPE, ABOUT, verdict, why, *made, left_out=tuple(left_out))
    return Plan(tree, (one,))
