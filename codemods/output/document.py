"""A plan as JSON for scripts, schema 2; `docs/schema.json` describes it."""

from __future__ import annotations

import json
from typing import Any

from codemods.engine.plan import Outcome, Plan, RecipePlan, Verdict
from codemods.output.table import NAME, version

SCHEMA = 2


def as_json(plan: Plan, *, verdict: Verdict | None = None, **more: Any) -> str:
    """The plan in JSON; `verdict` in the place of the plan's own, `more` are keys of other verbs.

    It is ASCII, so that it survives any encoding of stdout, and file names that are no text.
    """
    return json.dumps(document(plan, verdict=verdict, **more), indent=2) + "\n"


def document(plan: Plan, *, verdict: Verdict | None = None, **more: Any) -> dict[str, Any]:
    """The same as data."""
    return {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": version()},
        "tree": {
            "root": str(plan.tree.root) if plan.tree.ref else ".",
            "ref": plan.tree.ref,
            "package": plan.tree.package,
            "version": plan.tree.version,
            "commit": plan.tree.commit,
        },
        "verdict": (verdict or plan.verdict).value,
        "recipes": [_recipe(one) for one in plan.recipes],
        "files": [
            {
                "path": change.path,
                "sha256_before": change.sha256_before,
                "sha256_after": change.sha256_after,
            }
            for change in plan.changes
        ],
        **more,
    }


def _recipe(plan: RecipePlan) -> dict[str, Any]:
    return {
        "recipe": plan.recipe,
        "verdict": plan.verdict.value,
        "why": plan.why,
        "edits": [_edit(outcome) for outcome in plan.outcomes],
    }


def _edit(outcome: Outcome) -> dict[str, Any]:
    return {
        "edit": outcome.edit,
        "file": outcome.file,
        "line": outcome.line,
        "status": outcome.status.value,
        "reason": outcome.reason.value,
        "detail": outcome.detail,
    }
