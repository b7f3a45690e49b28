"""What single edits come to for the whole tree."""

from __future__ import annotations

import dataclasses
import hashlib
from itertools import permutations
from pathlib import Path

import pytest

from codemods.engine.plan import (
    EditName,
    FileChange,
    Outcome,
    Plan,
    Reason,
    Status,
    Tree,
    Verdict,
    verdict_of,
)

MADE = (Status.EDIT, Reason.ADDED)
THERE = (Status.PRESENT, Reason.ALREADY_PRESENT)
NO_TESTS = (Status.NOT_NEEDED, Reason.NO_TEST_MODULE)
NO_KERNEL = (Status.NOT_NEEDED, Reason.NO_KERNEL)
SUPERSEDED = (Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM)
REFUSED = (Status.REFUSED, Reason.NO_ANCHOR)


def outcomes(*pairs: tuple[Status, Reason]) -> list[Outcome]:
    return [
        Outcome(edit, status, reason, "as the test has it")
        for edit, (status, reason) in zip(EditName, pairs, strict=False)
    ]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ((MADE, MADE, MADE, NO_TESTS), Verdict.FIXABLE),
        ((THERE, MADE, THERE, NO_TESTS), Verdict.FIXABLE),
        ((THERE, THERE, THERE, MADE), Verdict.FIXABLE),
        ((THERE, THERE, THERE, THERE), Verdict.ALREADY_FIXED),
        ((THERE, THERE, THERE, NO_TESTS), Verdict.ALREADY_FIXED),
        ((NO_KERNEL, NO_KERNEL, NO_KERNEL, NO_KERNEL), Verdict.NOT_AFFECTED),
        ((NO_TESTS,), Verdict.NOT_AFFECTED),
        ((SUPERSEDED, SUPERSEDED, SUPERSEDED, SUPERSEDED), Verdict.SUPERSEDED),
        ((REFUSED, MADE, MADE, NO_TESTS), Verdict.REFUSED),
        ((MADE, MADE, MADE, REFUSED), Verdict.REFUSED),
        ((THERE, THERE, REFUSED, THERE), Verdict.REFUSED),
    ],
)
def test_the_verdict_sums_the_edits_up_in_any_order(
    pairs: tuple[tuple[Status, Reason], ...], expected: Verdict
) -> None:
    for order in permutations(pairs):
        assert verdict_of(outcomes(*order)) is expected


def test_refusals_are_picked_out() -> None:
    found = outcomes(MADE, REFUSED, THERE, REFUSED)
    plan = Plan(Tree(Path("."), "vllm"), tuple(found), (), Verdict.REFUSED)
    assert plan.refusals == (found[1], found[3])


def test_a_change_knows_its_digests() -> None:
    change = FileChange("a.py", b"one", b"two", (EditName.KERNEL,))
    assert change.sha256_before == hashlib.sha256(b"one").hexdigest()
    assert change.sha256_after == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize("kind", [EditName, Status, Reason, Verdict])
def test_values_are_slugs(kind: type[EditName]) -> None:
    for one in kind:
        assert one.value == one.name.lower().replace("_", "-")


def test_a_plan_cannot_be_changed() -> None:
    plan = Plan(Tree(Path("."), "vllm"), (), (), Verdict.FIXABLE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.verdict = Verdict.FIXED  # type: ignore[misc]
