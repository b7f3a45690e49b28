"""A plan as Markdown, for the summary of a CI job: a table of the edits, and the diff folded away.

Dialect: https://github.github.com/gfm/. GitHub shows at most 1 MiB of summary per step.
"""

from __future__ import annotations

import re

from codemods.engine.plan import Outcome, Plan, RecipePlan, Verdict
from codemods.output.patch import unified
from codemods.output.table import printable, recipe_verdict, where, why

_LARGEST_DIFF = 500_000  # bytes


def markdown(plan: Plan) -> str:
    """For each recipe a heading, its reason and a row per edit; then the diff when there is one."""
    text = "\n".join(_recipe(plan, one) for one in plan.recipes)
    return text if plan.verdict is Verdict.REFUSED else text + _diff(plan)


def _recipe(plan: Plan, one: RecipePlan) -> str:
    tree = plan.tree
    facts = [f"vLLM {cell(tree.version)}"] if tree.version else []
    facts += [f"ref {cell(tree.ref)}"] if tree.ref else []
    facts += [f"commit `{tree.commit[:12]}`"] if tree.commit else []
    about = f"{', '.join(facts)}." if facts else ""
    said = " ".join(filter(None, (about, cell(why(one)))))
    parts = [
        f"## {cell(one.about.title)}: {recipe_verdict(one)}\n",
        *([f"{said}\n"] if said else []),
        "| edit | status | reason | where | detail |\n|---|---|---|---|---|",
        *(_row(outcome, why(one)) for outcome in one.outcomes),
    ]
    return "\n".join(parts) + "\n"


def _row(outcome: Outcome, said: str) -> str:
    detail = "" if outcome.detail == said else outcome.detail
    cells = (
        outcome.edit,
        outcome.status.value,
        outcome.reason.value,
        where(outcome),
        detail,
    )
    return "| " + " | ".join(map(cell, cells)) + " |"


def _diff(plan: Plan) -> str:
    diff = unified(plan)
    if not diff:
        return ""
    shown = diff[:_LARGEST_DIFF].decode("utf-8", "replace")
    if len(diff) > _LARGEST_DIFF:
        shown = shown[: shown.rindex("\n") + 1] + "(the rest is left out)\n"
    fence = _fence(shown)
    count = len([change for change in plan.changes if change.before != change.after])
    summary = f"The change, in {count} file{'' if count == 1 else 's'}"
    return f"\n<details><summary>{summary}</summary>\n\n{fence}diff\n{shown}{fence}\n\n</details>\n"


def _fence(text: str) -> str:
    """Longer than any run of backticks inside, so that the text cannot end the block."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def cell(text: str) -> str:
    """A table's cell that shows `cell` as it is: no markup, no HTML, one line, valid UTF-8."""
    shown = printable(" ".join(text.split()))
    return re.sub(r"([\\`*_{}\[\]<>|~#&])", r"\\\1", shown)
