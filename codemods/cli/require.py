"""`--require VERDICT`: makes a build step fail when the tree no longer needs it."""

from __future__ import annotations

from codemods.engine.plan import Plan, Verdict
from codemods.output.table import tree_verdict

_MEANING = {
    Verdict.FIXABLE: "needs the fix",
    Verdict.FIXED: "has the fix now",
    Verdict.ALREADY_FIXED: "has the fix already",
    Verdict.SUPERSEDED: "has upstream's own fix",
    Verdict.NOT_AFFECTED: "does not have the bug",
    Verdict.REFUSED: "was refused",
}


def unmet(plan: Plan, required: Verdict) -> str | None:
    """One line for stderr, saying what to do, when the plan's verdict is another; else None."""
    if plan.verdict is required:
        return None
    tree = plan.tree
    name = f"vLLM {tree.version}" if tree.version else "the tree"
    at = f" at {tree.ref}" if tree.ref else ""
    found = f"{name}{at} in {tree.root} is {tree_verdict(plan)}, not {required.value}"
    meaning = _MEANING[plan.verdict]
    if plan.verdict is Verdict.ALREADY_FIXED and any(one.left_out for one in plan.recipes):
        meaning = "has these edits already"
    if required is Verdict.FIXABLE and plan.verdict is not Verdict.REFUSED:
        return f"{found}: it {meaning}, so drop this step"
    return f"{found}: it {meaning}"
