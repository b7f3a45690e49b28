"""What single edits come to for the whole tree."""

from __future__ import annotations

import dataclasses
import hashlib
from itertools import permutations

import pytest

from codemods.engine.plan import (
    WORST_FIRST,
    FileChange,
    Outcome,
    Plan,
    Reason,
    RecipePlan,
    Status,
    Verdict,
    merged,
    verdict_of,
)
from tests.plans import ABOUT, TREE, plan_of

EDITS = ("table", "warm-up", "caller", "tests")
MEANS = {Reason.NO_KERNEL: Verdict.NOT_AFFECTED, Reason.SUPERSEDED_UPSTREAM: Verdict.SUPERSEDED}
MADE = (Status.EDIT, Reason.ADDED)
THERE = (Status.PRESENT, Reason.ALREADY_PRESENT)
NO_TESTS = (Status.NOT_NEEDED, Reason.NO_TEST_MODULE)
NO_KERNEL = (Status.NOT_NEEDED, Reason.NO_KERNEL)
SUPERSEDED = (Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM)
TAKEN_OUT = (Status.EDIT, Reason.REMOVED)
REFUSED = (Status.REFUSED, Reason.NO_ANCHOR)


def outcomes(*pairs: tuple[Status, Reason]) -> list[Outcome]:
    return [
        Outcome(edit, status, reason, "as the test has it")
        for edit, (status, reason) in zip(EDITS, pairs, strict=False)
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
        ((SUPERSEDED, TAKEN_OUT, TAKEN_OUT), Verdict.SUPERSEDED),
        ((SUPERSEDED, TAKEN_OUT, REFUSED), Verdict.REFUSED),
    ],
)
def test_the_verdict_sums_the_edits_up_in_any_order(
    pairs: tuple[tuple[Status, Reason], ...], expected: Verdict
) -> None:
    for order in permutations(pairs):
        assert verdict_of(outcomes(*order), MEANS) is expected


def test_refusals_are_picked_out() -> None:
    found = outcomes(MADE, REFUSED, THERE, REFUSED)
    plan = plan_of(found, verdict=Verdict.REFUSED)
    assert plan.refusals == (found[1], found[3])


def test_a_change_knows_its_digests() -> None:
    change = FileChange("a.py", b"one", b"two", ("table",))
    assert change.sha256_before == hashlib.sha256(b"one").hexdigest()
    assert change.sha256_after == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize("kind", [Status, Reason, Verdict])
def test_values_are_slugs(kind: type[Status]) -> None:
    for one in kind:
        assert one.value == one.name.lower().replace("_", "-")


def test_a_plan_cannot_be_changed() -> None:
    plan = plan_of()
    for one, name in ((plan, "recipes"), (plan.recipes[0], "verdict")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, None)


def part(verdict: Verdict, *changes: FileChange, refused: bool = False) -> RecipePlan:
    found = outcomes(REFUSED) if refused else ()
    return RecipePlan("made-up", ABOUT, verdict, "", tuple(found), changes)


@pytest.mark.parametrize("verdict", WORST_FIRST)
def test_the_trees_verdict_is_the_worst_of_its_recipes(verdict: Verdict) -> None:
    others = WORST_FIRST[WORST_FIRST.index(verdict) :]
    for order in ([verdict, *others], [*others, verdict]):
        assert Plan(TREE, tuple(map(part, order))).verdict is verdict


def test_changes_of_one_file_by_two_recipes_are_one_change() -> None:
    first = FileChange("b.py", b"0", b"1", ("table",), rank=2, mode="100755")
    other = FileChange("a.py", b"x", b"y", ("table",))
    second = FileChange("b.py", b"1", b"2", ("caller",), rank=1, mode="100755")
    plan = Plan(TREE, (part(Verdict.FIXABLE, first), part(Verdict.FIXABLE, other, second)))
    both = FileChange("b.py", b"0", b"2", ("table", "caller"), rank=2, mode="100755")
    assert plan.changes == (other, both)


def test_one_refused_recipe_leaves_no_change() -> None:
    change = FileChange("a.py", b"0", b"1", ("table",))
    plan = Plan(TREE, (part(Verdict.FIXABLE, change), part(Verdict.REFUSED, refused=True)))
    assert plan.verdict is Verdict.REFUSED
    assert plan.changes == ()


def test_nothing_merged_is_nothing() -> None:
    assert merged(()) == ()


def test_only_what_was_fixable_is_fixed_once_it_is_carried_out() -> None:
    plan = Plan(TREE, tuple(map(part, WORST_FIRST))).carried_out()
    found = [one.verdict for one in plan.recipes]
    expected = [Verdict.FIXED if one is Verdict.FIXABLE else one for one in WORST_FIRST]
    assert found == expected


@pytest.mark.parametrize(
    ("pair", "holds"), [(MADE, True), (THERE, True), (NO_TESTS, False), (REFUSED, False)]
)
def test_an_edit_is_in_force_where_it_is_made_or_there(
    pair: tuple[Status, Reason], holds: bool
) -> None:
    (one,) = plan_of(outcomes(pair)).recipes
    assert one.in_force("table") is holds
    assert not one.in_force("caller")
