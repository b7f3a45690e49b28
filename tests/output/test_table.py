"""A plan as people read it."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from codemods.engine.plan import (
    About,
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
from codemods.output.table import refusal_lines, table, version
from tests.plans import ABOUT, TREE, WHY, plan_of

TABLE = Outcome("table", Status.EDIT, Reason.ADDED, "Listed.", "vllm/table.py", 12)
WARM = Outcome("warm-up", Status.PRESENT, Reason.ALREADY_PRESENT, "There.", "vllm/warm.py", 3)
WORK = Outcome("caller", Status.REFUSED, Reason.NO_ANCHOR, "No place.", "vllm/worker.py")
TESTS = Outcome("tests", Status.NOT_NEEDED, Reason.NO_TEST_MODULE, "None.")
CHANGE = FileChange("vllm/table.py", b"a", b"b", ("table",))
ALL = (TABLE, WARM, WORK, TESTS)


def plan(
    *outcomes: Outcome,
    changes: tuple[FileChange, ...] = (),
    verdict: Verdict = Verdict.FIXABLE,
    tree: Tree | None = None,
) -> Plan:
    return plan_of(outcomes, changes, verdict=verdict, tree=tree or TREE)


def test_the_table_has_a_line_for_the_tree_the_recipe_its_reason_and_each_edit() -> None:
    lines = table(plan(*ALL)).splitlines()
    assert lines[:3] == ["vLLM in vllm: fixable", "made-up: fixable", f"  {WHY}"]
    assert lines[3].split() == ["edit", "status", "reason", "where", "detail"]
    assert [line.split()[0] for line in lines[4:]] == ["table", "warm-up", "caller", "tests"]
    assert lines[4].split() == ["table", "edit", "added", "vllm/table.py:12", "Listed."]
    assert " vllm/worker.py " in lines[6]
    assert re.search(r"no-test-module +- +None\.", lines[7])


def test_columns_line_up_and_no_line_ends_in_white_space() -> None:
    lines = table(plan(*ALL)).splitlines()[3:]
    assert {
        line.index(word)
        for line, word in zip(lines[1:], ("Listed", "There", "No", "None"), strict=True)
    } == {lines[0].index("detail")}
    assert all(line == line.rstrip() for line in lines)


def test_each_recipe_has_its_own_lines() -> None:
    (first,) = plan(TABLE).recipes
    second = RecipePlan("other", ABOUT, Verdict.NOT_AFFECTED, "It is fine.", (TESTS,))
    lines = table(Plan(TREE, (first, second))).splitlines()
    assert lines[:2] == ["vLLM in vllm: fixable", "made-up: fixable"]
    assert lines[5:7] == ["other: not-affected", "  It is fine."]


def test_edits_that_end_alike_share_a_line() -> None:
    alike = [replace(TESTS, edit=edit) for edit in ("table", "warm-up", "caller")]
    lines = table(plan(*alike, replace(TESTS, edit="tests", detail="Other."))).splitlines()
    assert lines[4].startswith("  table, warm-up, caller  not-needed ")
    assert lines[5].startswith("  tests ")


def test_what_is_said_of_the_recipe_is_not_said_of_its_edits() -> None:
    assert table(plan(replace(TESTS, detail=WHY))).count(WHY) == 1


@pytest.mark.parametrize(
    ("left_out", "of"),
    [
        ((), ""),
        (("caller", "tests"), " (only table)"),
        (("caller",), " (only table)"),
    ],
)
def test_a_verdict_of_a_part_of_the_edits_says_of_which(left_out: tuple[str, ...], of: str) -> None:
    part = plan_of([TABLE], [CHANGE], left_out=left_out)
    lines = table(part).splitlines()
    assert lines[:2] == [f"vLLM in vllm: fixable{of}", f"made-up: fixable{of}"]
    assert lines[-1] == f"1 file would change{of}"
    assert markdown(part).startswith(f"## Made-up fix: fixable{of}\n")


def test_where_most_edits_were_asked_for_those_left_out_are_named() -> None:
    part = plan_of([TABLE, WARM], left_out=["tests"])
    assert table(part).startswith("vLLM in vllm: fixable (without tests)\n")


def test_a_verdict_of_several_recipes_names_each_edit_once() -> None:
    (one,) = plan_of([TABLE], left_out=["tests"]).recipes
    text = table(Plan(TREE, (one, replace(one, recipe="other", why="Other."))))
    assert text.splitlines()[0] == "vLLM in vllm: fixable (only table)"


@pytest.mark.parametrize("verdict", [one for one in Verdict if one is not Verdict.REFUSED])
def test_after_the_rewrite_the_reason_is_of_the_tree_before(verdict: Verdict) -> None:
    done = verdict is Verdict.FIXED
    line = table(plan(TABLE, verdict=verdict)).splitlines()[2]
    assert line == (f"  Before: {WHY}" if done else f"  {WHY}")
    assert (f"Before: {WHY}" in markdown(plan(TABLE, verdict=verdict))) == done


@pytest.mark.parametrize(
    ("changes", "done", "said"),
    [
        ((), False, None),
        ((), True, None),
        ((CHANGE,), False, "1 file would change"),
        ((CHANGE,), True, "1 file rewritten"),
        ((CHANGE, replace(CHANGE, path="b.py")), False, "2 files would change"),
    ],
)
def test_the_last_line_counts_the_files(
    changes: tuple[FileChange, ...], done: bool, said: str | None
) -> None:
    last = table(plan(TABLE, changes=changes), done=done).splitlines()[-1]
    assert last == said if said else "file" not in last


@pytest.mark.parametrize("width", [1, 40, 60, 79, 80, 100])
def test_a_table_fits_its_terminal(width: int) -> None:
    long = replace(TABLE, detail="A detail of many words, " * 5 + "and an end.")
    text = table(plan(long, WARM, WORK, TESTS), width=width)
    assert max(map(len, text.splitlines())) <= max(width, 40)
    assert "and an end." in " ".join(text.split())


def test_a_wide_terminal_gets_one_line_for_an_edit() -> None:
    assert table(plan(*ALL), width=200) == table(plan(*ALL))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (Tree(Path("t"), "vllm"), "vLLM in vllm: fixable"),
        (Tree(Path("t"), "vllm", "0.21.0"), "vLLM 0.21.0 in vllm: fixable"),
        (
            Tree(Path("t"), "a/vllm", "0.21.0", "0123456789abcdef"),
            "vLLM 0.21.0 0123456789ab in a/vllm: fixable",
        ),
        (Tree(Path("some/acme"), "."), "vLLM in acme: fixable"),
    ],
)
def test_the_tree_is_named_by_what_it_says(tree: Tree, expected: str) -> None:
    assert table(plan(TABLE, tree=tree)).splitlines()[0] == expected


def test_there_is_no_colour_unless_it_is_wanted() -> None:
    assert "\033" not in table(plan(*ALL))


def test_colour_changes_no_column() -> None:
    coloured = table(plan(*ALL), colour=True)
    assert coloured.count("\033[0m") == 4
    assert re.sub(r"\033\[\d+m", "", coloured) == table(plan(*ALL))


@pytest.mark.parametrize("odd", ["\n", "\r", "\x1b[31m", "\udce9", "\u2028", "\u202e"])
def test_a_table_holds_nothing_that_a_terminal_acts_on(odd: str) -> None:
    outcome = Outcome("table", Status.EDIT, Reason.ADDED, odd, f"{odd}.py", 1)
    text = table(plan(outcome, tree=Tree(Path("t"), odd)))
    assert len(text.splitlines()) == 5
    assert odd not in text.replace("\n", "", 5)


REFUSED = plan_of([TABLE, WORK], verdict=Verdict.REFUSED, why=WORK.detail)


@pytest.mark.parametrize("text", [table(REFUSED), table(REFUSED, width=50), markdown(REFUSED)])
def test_a_refusal_stands_once_in_its_edits_row(text: str) -> None:
    (line,) = [one for one in text.splitlines() if WORK.detail in one]
    assert "caller" in line or line == f"    {WORK.detail}"


def test_a_refusal_that_is_said_elsewhere_keeps_its_row_alone() -> None:
    text = table(REFUSED, refusals=False)
    assert text.splitlines()[-1].split() == ["caller", "refused", "no-anchor", "vllm/worker.py"]
    assert WORK.detail not in text
    assert TABLE.detail in text


def test_each_refusal_is_a_line() -> None:
    nowhere = Outcome("table", Status.REFUSED, Reason.AMBIGUOUS, "Two.")
    somewhere = Outcome("warm-up", Status.REFUSED, Reason.UNPARSABLE, "Odd.", "w.py", 4)
    assert refusal_lines(plan(nowhere, WORK, somewhere, TABLE)) == [
        "table refused (ambiguous): Two.",
        "vllm/worker.py: caller refused (no-anchor): No place.",
        "w.py:4: warm-up refused (unparsable): Odd.",
    ]


def test_edits_refused_alike_are_one_line() -> None:
    alike = [replace(WORK, edit=edit) for edit in ("warm-up", "caller")]
    assert refusal_lines(plan(*alike)) == [
        "vllm/worker.py: warm-up, caller refused (no-anchor): No place."
    ]


def test_a_place_that_the_reason_names_is_named_once() -> None:
    conflict = Outcome("caller", Status.REFUSED, Reason.UNPARSABLE, "Conflict in w.py:4", "w.py", 4)
    assert refusal_lines(plan(conflict)) == ["caller refused (unparsable): Conflict in w.py:4"]


def test_recipes_that_say_the_same_are_said_once() -> None:
    outcome = Outcome("caller", Status.REFUSED, Reason.AMBIGUOUS, "Two packages.")
    (one,) = plan(outcome).recipes
    other = replace(one, recipe="other", about=About("Other", "Do it", "https://other.example"))
    text = table(replace(plan(outcome), recipes=(one, other)))
    assert f"{one.recipe}, other: " in text
    assert text.count("caller") == 1
    apart = replace(other, why="Another reason.")
    assert table(replace(plan(outcome), recipes=(one, apart))).count("caller") == 2


def test_nothing_refused_is_no_line() -> None:
    assert refusal_lines(plan(TABLE, WARM, TESTS)) == []


def test_the_version_is_the_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: f"{name} 9")
    assert version() == "vllm-codemods 9"


def test_an_uninstalled_tool_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert version() == "unknown"
