"""Writes docs/forks.md and the golden diffs: `python -m tests.forks.table [--check]`.

A golden diff is only written when the judges agree with the tool, and is then read by a person
before it is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from codemods.engine.plan import Plan, Status
from tests.forks import trees
from tests.forks.judged import Judged, judged
from tests.forks.trees import Fork

PAGE = Path(__file__).parents[2] / "docs" / "forks.md"
HEAD = """\
# What forks do, and what the tool does with it

Each row is a small tree under `fixtures/forks/`, written for this table; its folder there says what
the fork changed, what is expected, and shows the rewrite. `python -m tests.forks.table` writes this
page from the tool's own answers, and a test fails where the two differ.

An edit is shown as its status and reason; `-` means that there is nothing to do.

| tree | what the fork did | verdict | kernel | warmup | worker |
|---|---|---|---|---|---|
"""
EDITS = ("kernel", "warmup", "worker")


def results() -> dict[str, Judged]:
    return {name: judged(trees.fork(name).tree) for name in trees.names()}


def page(found: dict[str, Judged]) -> str:
    rows = [row(trees.fork(name), result.plan) for name, result in found.items()]
    refusals = [
        f"- `{name}`, {outcome.edit}: {outcome.detail}\n"
        for name, result in found.items()
        for outcome in result.plan.refusals
    ]
    return HEAD + "".join(rows) + "\n## Why the refused are refused\n\n" + "".join(refusals)


def row(fork: Fork, plan: Plan) -> str:
    cells = [f"`{fork.name}`", fork.what, plan.verdict.value]
    for edit in EDITS:
        outcome = next(o for o in plan.outcomes if o.edit == edit)
        idle = outcome.status is Status.NOT_NEEDED
        cells.append("-" if idle else f"{outcome.status.value}: {outcome.reason.value}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def main(arguments: list[str]) -> int:
    found = results()
    wrong = {name: result.faults for name, result in found.items() if result.faults}
    for name, faults in wrong.items():
        print(f"{name}: {'; '.join(faults)}", file=sys.stderr)
    if arguments == ["--check"]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        return int(bool(wrong) or current != page(found))
    for name, result in found.items():
        path = trees.fork(name).folder / "expected.diff"
        if result.diff and name not in wrong:
            path.write_text(result.diff, encoding="utf-8")
        elif not result.diff:
            path.unlink(missing_ok=True)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(found), encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
