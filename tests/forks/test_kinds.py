"""Each kind of fork: the verdict, the reasons, and the bytes that a person has agreed to."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codemods.engine.plan import Reason
from tests.forks import running, table, trees
from tests.forks.judged import Judged, judged

NAMES = trees.names()


@cache
def result(name: str) -> Judged:
    return judged(trees.fork(name).tree)


FIXABLE = [name for name in NAMES if trees.fork(name).expected["verdict"] == "fixable"]
UNCHANGED = [name for name in NAMES if name not in FIXABLE]


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_and_the_reasons_are_those_expected(name: str) -> None:
    plan, expected = result(name).plan, trees.fork(name).expected
    said = {
        outcome.edit: {
            "status": outcome.status.value,
            "reason": outcome.reason.value,
            "file": outcome.file,
        }
        for outcome in plan.outcomes
    }
    shown = {o.edit: (o.status.value, o.reason.value, o.detail) for o in plan.outcomes}
    assert plan.verdict.value == expected["verdict"], shown
    for edit in ("kernel", "warmup", "worker", "unit-tests"):
        wanted = {k: v for k, v in expected.get(edit, {}).items() if k != "mentions"}
        assert wanted.items() <= said[edit].items(), shown


@pytest.mark.parametrize("name", NAMES)
def test_the_detail_names_what_was_found(name: str) -> None:
    plan, expected = result(name).plan, trees.fork(name).expected
    details = {outcome.edit: outcome.detail for outcome in plan.outcomes}
    assert all(details.values())
    for edit, detail in details.items():
        for word in expected.get(edit, {}).get("mentions", ()):
            assert word in detail


@pytest.mark.parametrize("name", NAMES)
def test_the_judge_finds_no_fault(name: str) -> None:
    assert result(name).faults == (), result(name).diff


@pytest.mark.parametrize("name", FIXABLE)
def test_the_change_is_the_one_agreed_to(name: str) -> None:
    assert result(name).diff == trees.fork(name).golden.decode("utf-8")


@pytest.mark.parametrize("name", UNCHANGED)
def test_nothing_changes_where_nothing_is_to_be_done(name: str) -> None:
    assert result(name).plan.changes == ()
    assert trees.fork(name).golden == b""


@pytest.mark.parametrize(
    "name", [n for n in NAMES if trees.fork(n).expected["verdict"] == "refused"]
)
def test_a_refusal_says_where_and_what_to_do(name: str) -> None:
    for outcome in result(name).plan.refusals:
        assert outcome.file is not None or outcome.reason is Reason.NO_WARMUP_MODULE
        assert len(outcome.detail) > 20


@pytest.mark.parametrize("name", FIXABLE)
def test_every_tree_runs_so_that_the_judge_can_see_a_fault(name: str) -> None:
    before, after = (running.record(tree) for tree in (result(name).before, result(name).after))
    assert before.error == after.error == ""
    assert before.raised == after.raised == {}
    assert before.requested == after.requested != []
    assert running.fixed_faults(result(name).before) != []


OWN_WARMUPS_LEAVE_SLOTS = (
    "03-block-table-method",
    "03-our-function-in-else-arm",
    "03-runner-method",
    "20-runner-method-one-name-crlf",
)


@pytest.mark.parametrize("name", FIXABLE)
def test_only_a_forks_own_warm_up_leaves_slots_behind(name: str) -> None:
    before, after = (running.record(tree) for tree in (result(name).before, result(name).after))
    assert after.left.items() <= before.left.items()
    assert after.live == before.live
    assert before.left == before.live == {} or name in OWN_WARMUPS_LEAVE_SLOTS


def test_the_order_that_a_fork_asserts_still_holds(tmp_path: Path) -> None:
    tree = result("12-order-asserted-elsewhere").after
    path = tree.write_to(tmp_path) / "tests/v1/worker/test_warm_up_order.py"
    names: dict[str, Any] = {"__file__": str(path), "__name__": "order"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    names["test_the_steps_keep_their_order"]()


def test_the_page_says_what_the_tool_says() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page({n: result(n) for n in NAMES})
