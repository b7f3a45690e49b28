"""Tests that are added to vLLM's test module, and those that are there."""

from __future__ import annotations

import pytest

from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Refusal, SourceFile
from codemods.recipes.warm_up import test_module

PARTS = ["def test_one():\n    assert f(1)\n", "def test_two():\n    assert f(2)\n"]
BEFORE = "import f\n"
AFTER = f"{BEFORE}\n\n{PARTS[0]}\n\n{PARTS[1]}"


def file(text: str) -> SourceFile:
    return SourceFile("tests/test_f.py", text.encode())


def test_tests_are_put_at_the_end() -> None:
    edited = test_module.add(file(BEFORE), PARTS)
    assert edited.module is not None
    assert edited.module.code == AFTER
    assert edited.outcome.detail == "2 tests for the other edits"


@pytest.mark.parametrize("text", [AFTER, AFTER.replace("\n", "\r\n"), f"{AFTER}\n\nx = 1\n"])
def test_a_second_run_finds_them(text: str) -> None:
    edited = test_module.add(file(text), PARTS)
    assert edited.module is None
    assert (edited.outcome.status, edited.outcome.line) == (Status.PRESENT, 4)


def test_tests_of_these_names_that_say_something_else_are_refused() -> None:
    with pytest.raises(Refusal, match="defines test_one already") as caught:
        test_module.add(file(AFTER.replace("f(1)", "f(3)")), PARTS)
    assert caught.value.reason is Reason.AMBIGUOUS
