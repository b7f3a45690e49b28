"""A plan as scripts read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemods.engine.plan import FileChange, Outcome, Reason, Status, Tree, Verdict
from codemods.output.document import as_json
from codemods.output.table import version
from tests.plans import WHY, plan_of

TABLE = Outcome("table", Status.EDIT, Reason.ADDED, "Listed.", "vllm/table.py", 12)
TESTS = Outcome("tests", Status.NOT_NEEDED, Reason.NO_TEST_MODULE, "None.")
CHANGE = FileChange("vllm/table.py", b"a", b"b", ("table",))


def test_json_is_schema_2() -> None:
    tree = Tree(Path("/elsewhere/tree"), "vllm", "0.21.0", None)
    text = as_json(plan_of((TABLE, TESTS), (CHANGE,), tree=tree))
    assert json.loads(text) == {
        "schema": 2,
        "tool": {"name": "vllm-codemods", "version": version()},
        "tree": {
            "root": ".",
            "ref": None,
            "package": "vllm",
            "version": "0.21.0",
            "commit": None,
        },
        "verdict": "fixable",
        "recipes": [
            {
                "recipe": "made-up",
                "verdict": "fixable",
                "why": WHY,
                "edits": [
                    {
                        "edit": "table",
                        "file": "vllm/table.py",
                        "line": 12,
                        "status": "edit",
                        "reason": "added",
                        "detail": "Listed.",
                    },
                    {
                        "edit": "tests",
                        "file": None,
                        "line": None,
                        "status": "not-needed",
                        "reason": "no-test-module",
                        "detail": "None.",
                    },
                ],
            }
        ],
        "files": [
            {
                "path": "vllm/table.py",
                "sha256_before": CHANGE.sha256_before,
                "sha256_after": CHANGE.sha256_after,
            }
        ],
    }
    assert list(json.loads(text)) == ["schema", "tool", "tree", "verdict", "recipes", "files"]


def test_json_takes_keys_of_other_verbs() -> None:
    assert json.loads(as_json(plan_of(), proofs=[1]))["proofs"] == [1]


@pytest.mark.parametrize("odd", ["é", "\udce9", '"', "\n", "\u2028", "\x1b[31m"])
def test_json_is_one_ascii_document_whatever_a_name_holds(odd: str) -> None:
    text = as_json(plan_of(tree=Tree(Path("t"), f"{odd}/vllm")))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["tree"]["package"] == f"{odd}/vllm"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_json_has_the_verdict_of_the_tree(verdict: Verdict) -> None:
    found = json.loads(as_json(plan_of(verdict=verdict)))
    assert (found["verdict"], found["recipes"][0]["verdict"]) == (verdict.value, verdict.value)


def test_json_of_a_refused_tree_has_no_files() -> None:
    refused = Outcome("table", Status.REFUSED, Reason.NO_ANCHOR, "No place.")
    plan = plan_of([refused], [CHANGE], verdict=Verdict.REFUSED)
    assert json.loads(as_json(plan))["files"] == []
