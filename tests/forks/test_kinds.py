"""Each kind of fork: the verdict, the reasons, and the bytes that a person has agreed to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codemods.engine.plan import Reason
from tests.forks import oracle, table, trees
from tests.forks.judged import Judged, judged

HINTS = oracle.Hints(frozenset({"watching.begin"}))
NAMES = trees.names()


@cache
def result(name: str) -> Judged:
    return judged(trees.fork(name).tree, HINTS)


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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """What each fixable tree does before and after, run on the CPU."""
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("runs")
    places = {
        (name, side): tree.write_to(folder / side / name) / tree.package
        for name in FIXABLE
        for side, tree in (("before", result(name).before), ("after", result(name).after))
    }
    homes = list(places.values())
    started = [start(homes[half::2]) for half in range(2)]
    records: dict[str, Any] = {}
    for process in started:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        records |= json.loads(out)
    return {
        name: (
            records[str(places[name, "before"].parent)],
            records[str(places[name, "after"].parent)],
        )
        for name in FIXABLE
    }


def start(homes: list[Path]) -> subprocess.Popen[str]:
    """Runs some packages in a process of their own, with Triton's interpreter."""
    script = Path(__file__).with_name("engine.py")
    arguments = [word for home in homes for word in (str(home.parent), home.name)]
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", FIXABLE)
def test_every_v1_start_launches_every_kernel_before_the_monitor(
    name: str, runs: dict[str, tuple[Any, Any]]
) -> None:
    before, after = runs[name]
    assert after["error"] == before["error"] == ""
    fork = trees.fork(name).tree
    wanted = set(oracle.launched_names(fork.inside, fork.package))
    for start, launches in after["launches"].items():
        own = list(before["launches"][start])
        if "v2" in start.split() and b"use_v2_model_runner" in fork.inside[trees.WORKER]:
            assert launches == own
        elif "small" in start.split():
            # One request at a time: the kernel for several can never be launched.
            assert {"_compute_slot_mapping_kernel", "slot_mapping_kernel"} & set(launches)
            assert not [launch for launch in launches if launch.startswith("!")]
        else:
            assert set(launches) == wanted, start


OWN_WARMUPS_LEAVE_SLOTS = (
    "03-block-table-method",
    "03-our-function-in-else-arm",
    "03-runner-method",
    "20-runner-method-one-name-crlf",
)


@pytest.mark.parametrize("name", FIXABLE)
def test_warming_up_leaves_no_trace_that_a_request_could_see(
    name: str, runs: dict[str, tuple[Any, Any]]
) -> None:
    before, after = runs[name]
    # A fork's own warm-up may leave slots; ours leaves nothing.
    assert after["left"].items() <= before["left"].items()
    assert after["live"] == before["live"]
    assert before["left"] == before["live"] == {} or name in OWN_WARMUPS_LEAVE_SLOTS
    assert after["slots"] == before["slots"]


def test_the_order_that_a_fork_asserts_still_holds(tmp_path: Path) -> None:
    tree = result("12-order-asserted-elsewhere").after
    path = tree.write_to(tmp_path) / "tests/v1/worker/test_warm_up_order.py"
    names: dict[str, Any] = {"__file__": str(path), "__name__": "order"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    names["test_the_steps_keep_their_order"]()


def test_the_page_says_what_the_tool_says() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page({n: result(n) for n in NAMES})
