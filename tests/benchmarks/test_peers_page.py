"""docs/benchmarks.md and its chart say what docs/benchmarks.json says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from peers import page
from peers.page.better import better
from peers.page.costs import disturbed
from peers.page.landing import contenders, needy, outcomes
from peers.page.table import OURS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "benchmarks.json").read_text("utf-8")
DATA: dict[str, Any] = json.loads(TEXT)
LANDING = DATA["landing"]


def test_the_page_is_made_of_the_json() -> None:
    assert (DOCS / "benchmarks.md").read_text("utf-8") == page.page(DATA)


def test_the_chart_is_made_of_the_json() -> None:
    assert (DOCS / "benchmarks.svg").read_text("utf-8") == page.picture(DATA)


def test_another_figure_would_be_another_page() -> None:
    other = json.loads(TEXT)
    next(r for r in other["landing"]["results"] if r["outcome"] == "right")["outcome"] = "refused"
    assert page.page(other) != page.page(DATA)
    assert page.picture(other) != page.picture(DATA)


def test_this_tool_has_no_wrong_tree_and_changes_none_that_needs_nothing() -> None:
    own = Counter(r["outcome"] for r in LANDING["results"] if r["contender"] == OURS)
    assert own["wrong"] == own["changed"] == 0
    assert own["right"]


def test_every_contender_was_tried_once_on_every_tree() -> None:
    trees = sorted(tree["tree"] for tree in LANDING["trees"])
    for name in contenders(LANDING):
        tried = [r["tree"] for r in LANDING["results"] if r["contender"] == name]
        assert sorted(tried) == trees


@pytest.mark.parametrize("kind", ["release", "fork"])
def test_the_three_counts_are_all_the_trees_in_need(kind: str) -> None:
    trees = needy(LANDING, kind)
    assert trees
    for name in contenders(LANDING):
        found = outcomes(LANDING, name, trees)
        assert found["right"] + found["wrong"] + found["refused"] == len(trees)


def test_every_wrong_tree_says_why() -> None:
    for result in LANDING["results"]:
        assert (result["outcome"] != "wrong") or result["faults"]


@pytest.mark.parametrize("part", DATA)
def test_each_part_says_how_and_where_it_was_measured(part: str) -> None:
    about = DATA[part]["about"]
    assert DATA[part]["command"].startswith("python benchmarks/peers.py")
    assert {"date", "commit", "cores", "cpu", "python", "versions"} <= set(about)
    for program in ("git", "patch", "wiggle", "ast-grep", "semgrep", "ruff", OURS):
        assert about["versions"][program]


@pytest.mark.parametrize("part", DATA)
def test_a_part_was_measured_on_sources_that_a_commit_holds(part: str) -> None:
    assert not DATA[part]["about"]["commit"].endswith("-dirty")


@pytest.mark.parametrize("private", ["/root/", "/home/", "/tmp/", "/work/", "localhost"])
def test_nothing_names_the_machine(private: str) -> None:
    assert private not in TEXT


def result(contender: str, outcome: str) -> dict[str, Any]:
    return {"contender": contender, "tree": "a", "outcome": outcome, "changed": 1, "exit": 0}


def landing_of(*results: dict[str, Any]) -> dict[str, Any]:
    tree = {"tree": "a", "kind": "release", "in_need": True}
    return {"landing": {"trees": [tree], "results": list(results)}}


def test_a_tree_that_another_gets_right_and_this_tool_does_not_is_reported() -> None:
    message = better(landing_of(result(OURS, "refused"), result("patch", "right")))
    assert "patch is right on 1 more releases" in message
    assert "`a`" in message


@pytest.mark.parametrize("outcome", ["right", "wrong", "refused"])
def test_nothing_is_reported_where_nobody_does_better(outcome: str) -> None:
    message = better(landing_of(result(OURS, "right"), result("patch", outcome)))
    assert message.startswith("Nowhere")


def test_a_faster_contender_is_reported() -> None:
    rows = [
        {"group": "one release", "what": f"{OURS} apply", "ms": 500.0, "mib": 100.0},
        {"group": "one release", "what": "git apply", "ms": 5.0, "mib": 10.0},
        {"group": "one release", "what": "semgrep rule", "ms": 5000.0, "mib": 300.0},
    ]
    message = better({"time": {"rows": rows}})
    assert "is 100 times as fast and uses 10% of the memory" in message
    assert "semgrep" not in message


@pytest.mark.parametrize("others", [0.06, 0.5, 1.9])
def test_times_of_a_busy_machine_are_called_a_trial(others: float) -> None:
    assert "trial" in disturbed(others)


@pytest.mark.parametrize("others", [0.0, 0.05])
def test_times_of_an_idle_machine_are_not(others: float) -> None:
    assert "trial" not in disturbed(others)
