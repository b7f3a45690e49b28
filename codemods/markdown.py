"""Plan -> Markdown, for the summary of a CI job: the table of the edits, and the diff folded away.

Dialect: https://github.github.com/gfm/. GitHub shows at most 1 MiB of summary per step.
"""

from __future__ import annotations

import re

from codemods.outcome import Outcome, Plan, Verdict
from codemods.patch import unified

_LARGEST_DIFF = 500_000  # bytes
_MEANING = {
    Verdict.FIXABLE: "The slot-mapping warm-up is missing; `vllm-codemods apply` adds it.",
    Verdict.FIXED: "The slot-mapping warm-up was added.",
    Verdict.ALREADY_FIXED: "The slot-mapping warm-up is in.",
    Verdict.SUPERSEDED: "Upstream's own warm-up is in; there is nothing to add.",
    Verdict.NOT_AFFECTED: "This tree has no slot-mapping kernel to warm up.",
    Verdict.REFUSED: "The tool cannot show that an edit is right, so it makes none.",
}


def markdown(plan: Plan) -> str:
    """A heading with the verdict, a row per edit, and the diff when there is one."""
    tree = plan.tree
    facts = [f"vLLM {_text(tree.version)}"] if tree.version else []
    facts += [f"commit `{tree.commit[:12]}`"] if tree.commit else []
    about = f" ({', '.join(facts)})" if facts else ""
    parts = [
        f"## Slot-mapping warm-up: {plan.verdict.value}\n",
        f"{_MEANING[plan.verdict]}{about}\n",
        "| edit | where | status | reason | detail |\n|---|---|---|---|---|",
        *(_row(outcome) for outcome in plan.outcomes),
    ]
    text = "\n".join(parts) + "\n"
    return text if plan.verdict is Verdict.REFUSED else text + _diff(plan)


def _row(outcome: Outcome) -> str:
    where = _where(outcome)
    cells = (outcome.edit.value, where, outcome.status.value, outcome.reason.value, outcome.detail)
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _where(outcome: Outcome) -> str:
    if outcome.file is None:
        return ""
    return outcome.file if outcome.line is None else f"{outcome.file}:{outcome.line}"


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


def _text(cell: str) -> str:
    """A table's cell that shows `cell` as it is: no markup, no HTML, one line, valid UTF-8."""
    cell = cell.encode("utf-8", "backslashreplace").decode()
    escaped = re.sub(r"([\\`*_{}\[\]<>|~#&])", r"\\\1", cell)
    return " ".join(escaped.split())
