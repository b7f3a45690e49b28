"""The plans of several trees of one repository: a row for each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from codemods.engine.plan import WORST_FIRST, Plan, worst
from codemods.output.document import SCHEMA, document
from codemods.output.markdown import cell
from codemods.output.table import NAME, printable, tree_verdict, version

_HEADER = ("ref", "commit", "verdict", "why")
_COMMIT = 12  # letters of an id


def table(plans: Sequence[Plan], *, width: int | None = None) -> str:
    """The trees as a table for people; where a terminal is too narrow, `why` has its own lines."""
    rows = [tuple(map(printable, _row(plan))) for plan in plans]
    widths = [max(map(len, column)) for column in zip(_HEADER, *rows, strict=True)]
    if width is not None and 2 * len(_HEADER) + sum(widths) > width:
        lines = [line for row in rows for line in _stacked(row, width)]
    else:
        lines = [_line(row, widths) for row in (_HEADER, *rows)]
    return "\n".join([*lines, _count(plans)]) + "\n"


def markdown(plans: Sequence[Plan]) -> str:
    """The trees as a table in GitHub's Markdown."""
    lines = [f"| {' | '.join(_HEADER)} |", f"|{'---|' * len(_HEADER)}"]
    lines += [f"| {' | '.join(map(cell, _row(plan)))} |" for plan in plans]
    return "\n".join([*lines, "", _count(plans)]) + "\n"


def as_json(plans: Sequence[Plan]) -> str:
    """The trees in JSON."""
    found = {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": version()},
        "verdict": worst(plan.verdict for plan in plans).value,
        "trees": [document(plan) for plan in plans],
    }
    return json.dumps(found, indent=2) + "\n"


def _row(plan: Plan) -> tuple[str, ...]:
    tree = plan.tree
    return (tree.ref or "-", (tree.commit or "-")[:_COMMIT], tree_verdict(plan), _why(plan))


def _why(plan: Plan) -> str:
    """Why of the recipes that decide the tree's verdict, each named where there are several."""
    deciding = [one for one in plan.recipes if one.verdict is plan.verdict]
    if all(one.why == deciding[0].why for one in plan.recipes):
        return deciding[0].why
    named = len(plan.recipes) > 1
    return " ".join(f"{one.recipe}: {one.why}" if named else one.why for one in deciding)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(size) for text, size in zip(row, widths, strict=True)).rstrip()


def _stacked(row: Sequence[str], width: int) -> list[str]:
    import textwrap  # only a terminal needs it

    ref, commit, verdict, why = row
    text = {"width": width, "initial_indent": "  ", "subsequent_indent": "  "}
    return [f"{ref}: {verdict} ({commit})", *textwrap.wrap(why, break_on_hyphens=False, **text)]  # type: ignore[arg-type]


def _count(plans: Sequence[Plan]) -> str:
    found = Counter(plan.verdict for plan in plans)
    each = [f"{found[verdict]} {verdict.value}" for verdict in WORST_FIRST if verdict in found]
    return f"{len(plans)} ref{'s' if len(plans) > 1 else ''}: {', '.join(each)}"
