"""What counts as right, wrong and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers.attempts import Attempt
from peers.landing import Outcome, outcome
from peers.subjects import Subject


def attempt(*, need: bool, code: int = 0, changed: bool = True) -> Attempt:
    subject = Subject("a", "release", Path("a"), "vllm", need, True)
    return Attempt("patch", subject, Path("b"), code, ("f.py",) if changed else (), (), ())


def test_no_fault_and_exit_0_is_right() -> None:
    assert outcome(attempt(need=True), []) is Outcome.RIGHT


def test_a_fault_and_exit_0_is_wrong() -> None:
    assert outcome(attempt(need=True), ["it compiles late"]) is Outcome.WRONG


def test_exit_0_on_a_tree_that_was_left_without_the_fix_is_wrong() -> None:
    assert outcome(attempt(need=True, changed=False), ["it compiles late"]) is Outcome.WRONG


@pytest.mark.parametrize("code", [1, 2, 3, 128])
@pytest.mark.parametrize("changed", [True, False])
def test_any_other_exit_is_a_refusal_whatever_was_changed(code: int, changed: bool) -> None:
    assert outcome(attempt(need=True, code=code, changed=changed), []) is Outcome.REFUSED


@pytest.mark.parametrize("code", [0, 1])
def test_a_tree_that_needs_nothing_and_stays_is_untouched(code: int) -> None:
    assert outcome(attempt(need=False, code=code, changed=False), []) is Outcome.UNTOUCHED


@pytest.mark.parametrize("code", [0, 1])
def test_a_tree_that_needs_nothing_and_changes_is_changed(code: int) -> None:
    assert outcome(attempt(need=False, code=code), []) is Outcome.CHANGED
