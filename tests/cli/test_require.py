"""`--require`: one line when the tree is not what the build step was written for."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.cli.require import unmet
from codemods.engine.plan import Plan, Tree, Verdict
from tests.plans import plan_of


def plan_with(verdict: Verdict, version: str | None = "0.29.0") -> Plan:
    return plan_of(verdict=verdict, tree=Tree(Path("src"), "vllm", version))


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_tree_with_the_required_verdict_says_nothing(verdict: Verdict) -> None:
    assert unmet(plan_with(verdict), verdict) is None


@pytest.mark.parametrize(
    "verdict", [Verdict.ALREADY_FIXED, Verdict.SUPERSEDED, Verdict.NOT_AFFECTED]
)
def test_a_tree_that_needs_no_fix_says_to_drop_the_step(verdict: Verdict) -> None:
    line = unmet(plan_with(verdict), Verdict.FIXABLE)
    assert line is not None
    assert line.endswith("so drop this step")
    assert f"vLLM 0.29.0 in src is {verdict.value}, not fixable" in line
    assert "\n" not in line


def test_a_ref_is_named() -> None:
    tree = Tree(Path("."), "vllm", "0.29.0", "0" * 40, "release/0.29")
    line = unmet(plan_of(verdict=Verdict.SUPERSEDED, tree=tree), Verdict.FIXABLE)
    assert line is not None
    assert line.startswith("vLLM 0.29.0 at release/0.29 in . is superseded, not fixable: ")


def test_a_part_of_the_edits_is_not_the_fix() -> None:
    plan = plan_of(verdict=Verdict.ALREADY_FIXED, left_out=["tests"])
    line = unmet(plan, Verdict.FIXABLE)
    assert line == (
        "the tree in tree is already-fixed (without tests), not fixable: "
        "it has these edits already, so drop this step"
    )


def test_a_refused_tree_gets_no_advice_to_drop_the_step() -> None:
    line = unmet(plan_with(Verdict.REFUSED), Verdict.FIXABLE)
    assert line is not None
    assert "drop" not in line


def test_a_tree_without_a_version_is_called_the_tree() -> None:
    line = unmet(plan_with(Verdict.SUPERSEDED, None), Verdict.FIXABLE)
    assert line is not None
    assert line.startswith("the tree in src")
