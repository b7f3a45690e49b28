"""A plan as a table for people or as JSON for scripts."""

from __future__ import annotations

from typing import Any

from codemods.outcome import Outcome, Plan, Status

SCHEMA = 1
NAME = "vllm-codemods"
_COLOURS = {
    Status.EDIT: "\033[32m",
    Status.PRESENT: "\033[36m",
    Status.NOT_NEEDED: "\033[2m",
    Status.REFUSED: "\033[31m",
}
_RESET = "\033[0m"


def version() -> str:
    """The installed distribution's version, "unknown" when it runs uninstalled."""
    from importlib import metadata

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "unknown"


def printable(text: str) -> str:
    """The text in one line, what a terminal would act on written as Python escapes it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def table(plan: Plan, *, colour: bool = False) -> str:
    """A line for the tree and one for each edit, in columns."""
    rows = [("edit", "status", "reason", "where", "detail")]
    rows += [_row(outcome) for outcome in plan.outcomes]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [f"{_tree(plan)}: {plan.verdict.value}"]
    for row, outcome in zip(rows, (None, *plan.outcomes), strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        if colour and outcome is not None:
            cells[1] = f"{_COLOURS[outcome.status]}{cells[1]}{_RESET}"
        lines.append("  ".join([*cells, row[4]]).rstrip())
    return "\n".join(lines) + "\n"


def as_json(plan: Plan, **more: Any) -> str:
    """The plan in JSON, schema 1; `more` are keys of other verbs."""
    import json

    document = {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": version()},
        "tree": {
            "root": ".",
            "package": plan.tree.package,
            "version": plan.tree.version,
            "commit": plan.tree.commit,
        },
        "verdict": plan.verdict.value,
        "edits": [_edit(outcome) for outcome in plan.outcomes],
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
    # In ASCII it survives any encoding of stdout, and file names that are no text.
    return json.dumps(document, indent=2) + "\n"


def refusal_lines(plan: Plan) -> list[str]:
    """A line for each refusal: where, which edit, why and what to do."""
    return [
        f"{f'{_where(outcome)}: ' if outcome.file else ''}{outcome.edit.value} refused "
        f"({outcome.reason.value}): {outcome.detail}"
        for outcome in plan.refusals
    ]


def _tree(plan: Plan) -> str:
    name = plan.tree.package if plan.tree.package != "." else plan.tree.root.resolve().name
    known = [plan.tree.version, plan.tree.commit and plan.tree.commit[:12]]
    return printable(" ".join(["vLLM", *filter(None, known), f"in {name}"]))


def _row(outcome: Outcome) -> tuple[str, str, str, str, str]:
    return (
        outcome.edit.value,
        outcome.status.value,
        outcome.reason.value,
        printable(_where(outcome)),
        printable(outcome.detail),
    )


def _where(outcome: Outcome) -> str:
    if outcome.file is None:
        return "-"
    return outcome.file if outcome.line is None else f"{outcome.file}:{outcome.line}"


def _edit(outcome: Outcome) -> dict[str, Any]:
    return {
        "edit": outcome.edit.value,
        "file": outcome.file,
        "line": outcome.line,
        "status": outcome.status.value,
        "reason": outcome.reason.value,
        "detail": outcome.detail,
    }
