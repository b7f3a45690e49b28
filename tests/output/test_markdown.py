"""The table and the diff as Markdown, and what must not break out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.plan import (
    FileChange,
    Outcome,
    Plan,
    Reason,
    RecipePlan,
    Status,
    Tree,
    Verdict,
)
from codemods.output.markdown import markdown
from tests import plans

TREE = Tree(Path("/nonexistent"), "vllm", "0.21.0", "0123456789abcdef")


def plan_of(verdict: Verdict, *changes: FileChange, detail: str = "Adds a name.") -> Plan:
    outcome = Outcome("table", Status.EDIT, Reason.ADDED, detail, "vllm/a_b.py", 3)
    return plans.plan_of([outcome], changes, verdict=verdict, tree=TREE)


def test_a_fixable_tree_shows_its_table_and_its_diff() -> None:
    change = FileChange("vllm/a_b.py", b"x\n", b"y\n", ("table",))
    assert markdown(plan_of(Verdict.FIXABLE, change)) == (
        "## Made-up fix: fixable\n"
        "\n"
        "vLLM 0.21.0, commit `0123456789ab`. Nothing fixes it.\n"
        "\n"
        "| edit | status | reason | where | detail |\n"
        "|---|---|---|---|---|\n"
        "| table | edit | added | vllm/a\\_b.py:3 | Adds a name. |\n"
        "\n"
        "<details><summary>The change, in 1 file</summary>\n"
        "\n"
        "```diff\n--- a/vllm/a_b.py\n+++ b/vllm/a_b.py\n@@ -1 +1 @@\n-x\n+y\n```\n"
        "\n"
        "</details>\n"
    )


@pytest.mark.parametrize(
    "verdict", [Verdict.ALREADY_FIXED, Verdict.SUPERSEDED, Verdict.NOT_AFFECTED]
)
def test_a_tree_with_nothing_to_do_shows_no_diff(verdict: Verdict) -> None:
    text = markdown(plan_of(verdict))
    assert text.startswith(f"## Made-up fix: {verdict.value}\n")
    assert "<details>" not in text


def test_a_refused_tree_shows_no_diff_even_if_some_edits_would_do() -> None:
    change = FileChange("vllm/a.py", b"x\n", b"y\n", ())
    assert "<details>" not in markdown(plan_of(Verdict.REFUSED, change))


def test_an_unchanged_file_makes_no_diff() -> None:
    assert "<details>" not in markdown(plan_of(Verdict.FIXABLE, FileChange("a", b"x", b"x", ())))


def test_a_fence_in_the_source_does_not_end_the_diff() -> None:
    change = FileChange("vllm/a.py", b"```\n````\nx\n", b"```\n````\ny\n", ())
    assert "`````diff\n" in markdown(plan_of(Verdict.FIXABLE, change))


def test_a_detail_cannot_break_the_table_or_bring_html_in() -> None:
    text = markdown(plan_of(Verdict.FIXABLE, detail="a|b\n<script> `x` [y](z)"))
    row = next(line for line in text.splitlines() if line.startswith("| table"))
    assert row.endswith("| a\\|b \\<script\\> \\`x\\` \\[y\\](z) |")


def test_a_huge_diff_is_cut_at_a_line_and_says_so() -> None:
    change = FileChange("a.py", b"", b"line\n" * 200_000, ())
    text = markdown(plan_of(Verdict.FIXABLE, change))
    assert len(text.encode()) < 1 << 20
    assert "\n+line\n(the rest is left out)\n```\n" in text


def test_a_missing_version_and_commit_leave_no_trace() -> None:
    plan = plans.plan_of(verdict=Verdict.NOT_AFFECTED)
    assert markdown(plan).splitlines()[2] == plans.WHY


def test_a_refused_tree_is_named_and_its_reason_is_in_the_row() -> None:
    lines = markdown(plan_of(Verdict.REFUSED)).splitlines()
    assert lines[2] == "vLLM 0.21.0, commit `0123456789ab`."
    unnamed = markdown(plans.plan_of(verdict=Verdict.REFUSED)).splitlines()
    assert unnamed[:3] == ["## Made-up fix: refused", "", lines[4]]


def test_each_recipe_has_its_heading_and_the_tree_one_diff() -> None:
    change = FileChange("a.py", b"x\n", b"y\n", ("table",))
    first = plan_of(Verdict.FIXABLE, change).recipes[0]
    second = RecipePlan("idle", plans.ABOUT, Verdict.NOT_AFFECTED, "It is fine.", ())
    text = markdown(Plan(TREE, (first, second)))
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Made-up fix: fixable", "## Made-up fix: not-affected"]
    assert text.count("<details>") == 1


def test_what_is_said_above_the_table_is_not_said_in_it() -> None:
    outcome = Outcome("table", Status.NOT_NEEDED, Reason.NO_KERNEL, plans.WHY)
    text = markdown(plans.plan_of([outcome], verdict=Verdict.NOT_AFFECTED))
    assert text.count(plans.WHY) == 1
