"""A plan as people and scripts read it."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest

from codemods.engine.plan import EditName, FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.output import report

KERNEL = Outcome(EditName.KERNEL, Status.EDIT, Reason.ADDED, "Listed.", "vllm/table.py", 12)
WARM = Outcome(EditName.WARMUP, Status.PRESENT, Reason.ALREADY_PRESENT, "There.", "vllm/warm.py", 3)
WORK = Outcome(EditName.WORKER, Status.REFUSED, Reason.NO_ANCHOR, "No place.", "vllm/worker.py")
TESTS = Outcome(EditName.UNIT_TESTS, Status.NOT_NEEDED, Reason.NO_TEST_MODULE, "None.")
CHANGE = FileChange("vllm/table.py", b"a", b"b", (EditName.KERNEL,))
ALL = (KERNEL, WARM, WORK, TESTS)


def plan(
    *outcomes: Outcome,
    changes: tuple[FileChange, ...] = (),
    verdict: Verdict = Verdict.FIXABLE,
    tree: Tree | None = None,
) -> Plan:
    return Plan(tree or Tree(Path("tree"), "vllm"), outcomes, changes, verdict)


def test_the_table_has_a_line_for_the_tree_and_each_edit() -> None:
    lines = report.table(plan(*ALL)).splitlines()
    assert lines[0] == "vLLM in vllm: fixable"
    assert lines[1].split() == ["edit", "status", "reason", "where", "detail"]
    assert [line.split()[0] for line in lines[2:]] == ["kernel", "warmup", "worker", "unit-tests"]
    assert lines[2].split() == ["kernel", "edit", "added", "vllm/table.py:12", "Listed."]
    assert " vllm/worker.py " in lines[4]
    assert re.search(r"no-test-module +- +None\.", lines[5])


def test_columns_line_up_and_no_line_ends_in_white_space() -> None:
    lines = report.table(plan(*ALL)).splitlines()[1:]
    assert {
        line.index(word)
        for line, word in zip(lines[1:], ("Listed", "There", "No", "None"), strict=True)
    } == {lines[0].index("detail")}
    assert all(line == line.rstrip() for line in lines)


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
    assert report.table(plan(KERNEL, tree=tree)).splitlines()[0] == expected


def test_there_is_no_colour_unless_it_is_wanted() -> None:
    assert "\033" not in report.table(plan(*ALL))


def test_colour_changes_no_column() -> None:
    coloured = report.table(plan(*ALL), colour=True)
    assert coloured.count("\033[0m") == 4
    assert re.sub(r"\033\[\d+m", "", coloured) == report.table(plan(*ALL))


def test_json_is_schema_1() -> None:
    tree = Tree(Path("/elsewhere/tree"), "vllm", "0.21.0", None)
    text = report.as_json(plan(KERNEL, TESTS, changes=(CHANGE,), tree=tree))
    assert json.loads(text) == {
        "schema": 1,
        "tool": {"name": "vllm-codemods", "version": report.version()},
        "tree": {"root": ".", "package": "vllm", "version": "0.21.0", "commit": None},
        "verdict": "fixable",
        "edits": [
            {
                "edit": "kernel",
                "file": "vllm/table.py",
                "line": 12,
                "status": "edit",
                "reason": "added",
                "detail": "Listed.",
            },
            {
                "edit": "unit-tests",
                "file": None,
                "line": None,
                "status": "not-needed",
                "reason": "no-test-module",
                "detail": "None.",
            },
        ],
        "files": [
            {
                "path": "vllm/table.py",
                "sha256_before": CHANGE.sha256_before,
                "sha256_after": CHANGE.sha256_after,
            }
        ],
    }
    assert list(json.loads(text)) == ["schema", "tool", "tree", "verdict", "edits", "files"]


def test_json_takes_keys_of_other_verbs() -> None:
    assert json.loads(report.as_json(plan(), proofs=[1]))["proofs"] == [1]


@pytest.mark.parametrize("odd", ["é", "\udce9", '"', "\n", "\u2028", "\x1b[31m"])
def test_json_is_one_ascii_document_whatever_a_name_holds(odd: str) -> None:
    text = report.as_json(plan(tree=Tree(Path("t"), f"{odd}/vllm")))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["tree"]["package"] == f"{odd}/vllm"


@pytest.mark.parametrize("odd", ["\n", "\r", "\x1b[31m", "\udce9", "\u2028", "\u202e"])
def test_a_table_holds_nothing_that_a_terminal_acts_on(odd: str) -> None:
    outcome = Outcome(EditName.KERNEL, Status.EDIT, Reason.ADDED, odd, f"{odd}.py", 1)
    text = report.table(plan(outcome, tree=Tree(Path("t"), odd)))
    assert len(text.splitlines()) == 3
    assert odd not in text.replace("\n", "", 3)


def test_each_refusal_is_a_line() -> None:
    nowhere = Outcome(EditName.KERNEL, Status.REFUSED, Reason.AMBIGUOUS, "Two.")
    somewhere = Outcome(EditName.WARMUP, Status.REFUSED, Reason.UNPARSABLE, "Odd.", "w.py", 4)
    assert report.refusal_lines(plan(nowhere, WORK, somewhere, KERNEL)) == [
        "kernel refused (ambiguous): Two.",
        "vllm/worker.py: worker refused (no-anchor): No place.",
        "w.py:4: warmup refused (unparsable): Odd.",
    ]


def test_nothing_refused_is_no_line() -> None:
    assert report.refusal_lines(plan(KERNEL, WARM, TESTS)) == []


def test_the_version_is_the_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: f"{name} 9")
    assert report.version() == "vllm-codemods 9"


def test_an_uninstalled_tool_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert report.version() == "unknown"
