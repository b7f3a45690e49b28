"""Each kind of fork: the verdict, the reasons, and the bytes that a person has agreed to."""

from __future__ import annotations

from functools import cache

import pytest

from codemods.engine.plan import Plan, Verdict
from tests.rewriting import sound

from . import forks

EDITS = ("kernel", "warmup", "worker", "unit-tests")
FIXABLE = [name for name in forks.names() if forks.fork(name).expected["verdict"] == "fixable"]
OTHERS = [name for name in forks.names() if name not in FIXABLE]


@cache
def plan(name: str) -> Plan:
    return forks.planned(forks.fork(name).files)


@pytest.mark.parametrize("name", forks.names())
def test_the_verdict_and_the_reasons_are_those_expected(name: str) -> None:
    expected = forks.fork(name).expected
    found = {one.edit: [one.status.value, one.reason.value] for one in plan(name).outcomes}
    details = [one.detail for one in plan(name).outcomes]
    assert found == {edit: expected[edit] for edit in EDITS}, details
    assert plan(name).verdict.value == expected["verdict"]
    for words in expected.get("mentions", ()):
        assert any(words in detail for detail in details), details
    assert expected.get("why", "") in plan(name).recipes[0].why


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_changes_where_nothing_is_to_be_done(name: str) -> None:
    assert plan(name).changes == ()
    assert not forks.fork(name).golden.exists()


@pytest.mark.parametrize("name", FIXABLE)
def test_the_change_is_the_one_agreed_to(name: str) -> None:
    one = forks.fork(name)
    found = forks.diff(one.files, forks.rewritten(one.files, plan(name)))
    assert found == one.golden.read_text("utf-8")


@pytest.mark.parametrize("name", FIXABLE)
def test_a_second_run_changes_nothing(name: str) -> None:
    after = forks.rewritten(forks.fork(name).files, plan(name))
    again = forks.planned(after)
    assert again.changes == ()
    assert again.verdict in (Verdict.ALREADY_FIXED, Verdict.SUPERSEDED)


@pytest.mark.parametrize("name", FIXABLE)
def test_bytes_outside_the_edit_stay(name: str) -> None:
    for change in plan(name).changes:
        after = change.after
        sound(lambda data, after=after: after, change.before, change.after)
