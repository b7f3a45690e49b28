"""The trees of several refs: a row each, in a table, in Markdown and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemods.engine.plan import Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.output import trees
from tests.plans import plan_of

TABLE = Outcome("table", Status.EDIT, Reason.ADDED, "Listed.", "vllm/table.py", 12)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def plan(ref: str, verdict: Verdict = Verdict.FIXABLE, why: str = "Nothing fixes it.") -> Plan:
    return plan_of(verdict=verdict, why=why, tree=Tree(Path("r"), "vllm", None, COMMIT, ref))


def test_a_table_has_a_row_for_each_and_counts_them() -> None:
    plans = [plan("a"), plan("release/1", Verdict.REFUSED, "It cannot be read."), plan("b")]
    assert trees.table(plans).splitlines() == [
        "ref        commit        verdict  why",
        "a          0123456789ab  fixable  Nothing fixes it.",
        "release/1  0123456789ab  refused  It cannot be read.",
        "b          0123456789ab  fixable  Nothing fixes it.",
        "3 refs: 1 refused, 2 fixable",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_table_fits_the_terminal(width: int) -> None:
    table = trees.table([plan("release/1", why="word " * 40)], width=width)
    assert max(map(len, table.splitlines())) <= width


def test_nothing_in_a_name_acts_on_a_terminal_or_is_markup() -> None:
    odd = plan("a\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}|<b>`", why="x\ny\x07|z")
    table, text = trees.table([odd]), trees.markdown([odd])
    assert all(line.isprintable() for line in (table + text).splitlines())
    row = text.splitlines()[2]
    assert row.count("|") - row.count("\\|") == 5
    assert "<b>" not in row.replace("\\<b\\>", "")


def test_a_row_says_of_which_edits_its_verdict_is() -> None:
    part = plan_of([TABLE], tree=plan("a").tree, left_out=["tests"])
    assert "  fixable (only table)  " in trees.table([part, plan("b")])
    assert "only" not in trees.as_json([part])


def test_json_has_the_worst_verdict_and_every_tree() -> None:
    found = json.loads(trees.as_json([plan("a"), plan("b", Verdict.SUPERSEDED)]))
    assert found["verdict"] == "fixable"
    assert [tree["tree"]["ref"] for tree in found["trees"]] == ["a", "b"]
