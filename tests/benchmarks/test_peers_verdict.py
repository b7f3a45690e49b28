"""The judge's comparison of what a tree did before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest
from peers.judge.record import Record
from peers.judge.verdict import Files, faults, stops_it

WORKER = "vllm/v1/worker/gpu_worker.py"
BEFORE = {WORKER: b"def a(x):\n    return x\n\n\nuse_v2_model_runner = 1\n"}
WAS = Record(calls={"none": ["runner.dummy", "monitor"]}, late={"none": ["kernel"]})
NOW = Record(calls={"none": ["runner.dummy", "warmup_v1_slot_mapping_kernel", "monitor"]})


def found(after: Files = BEFORE, was: Record = WAS, now: Record = NOW) -> list[str]:
    return list(faults(BEFORE, after, was, now))


def test_the_fix_alone_is_right() -> None:
    assert found() == []


@pytest.mark.parametrize(
    "after",
    [
        BEFORE[WORKER].replace(b"def a", b"@decorated\ndef a"),
        BEFORE[WORKER] + b"def added():\n    pass\n",
        BEFORE[WORKER].replace(b"return x", b"return x  # a comment"),
        BEFORE[WORKER] + b"def compile_or_warm_up_model(self):\n    pass\n",
    ],
)
def test_what_a_fix_may_add_is_no_fault(after: bytes) -> None:
    assert found({WORKER: after}) == []


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (replace(NOW, late={"last": ["kernel"]}), "requests compile a kernel"),
        (replace(NOW, error="NameError: x"), "does not start: NameError"),
        (replace(NOW, unserved="TypeError: x"), "a request fails: TypeError"),
        (replace(NOW, v2_launches=["kernel"]), "V2 runner"),
        (replace(NOW, tables={"last": "of a live request"}), "of a live request"),
        (replace(NOW, calls={"none": ["monitor"]}), "calls other things"),
        (replace(NOW, calls={"none": ["monitor", "runner.dummy"]}), "calls other things"),
    ],
)
def test_what_a_run_shows_is_a_fault(now: Record, message: str) -> None:
    assert [fault for fault in found(now=now) if message in fault]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (b"def a(x:\n", "no Python"),
        (b"def a(x):\n    return 2 * x\n", "a function has changed"),
        (b"use_v2_model_runner = 1\n", "a function has changed"),
    ],
)
def test_what_the_files_show_is_a_fault(after: bytes, message: str) -> None:
    assert [fault for fault in found({WORKER: after}) if message in fault]


def test_a_file_that_is_gone_is_a_fault() -> None:
    assert found({}) == ["a function has changed that is no part of the fix"]


def test_what_a_fork_did_to_its_tables_before_is_no_fault_of_the_fix() -> None:
    both = {"last": "of no request"}
    assert found(was=replace(WAS, tables=both), now=replace(NOW, tables=both)) == []


def test_a_worker_without_the_v2_runner_has_no_v2_start() -> None:
    files = {WORKER: b"x = 1\n", "vllm/config.py": b"use_v2_model_runner = 1\n"}
    assert list(faults(files, files, WAS, replace(NOW, v2_launches=["kernel"]))) == []


@pytest.mark.parametrize(
    ("was", "now", "stops"),
    [("", "", False), ("", "NameError", True), ("x", "x", False), ("x", "", False)],
)
def test_only_a_tree_that_started_can_be_stopped(was: str, now: str, stops: bool) -> None:
    assert stops_it(Record(error=was), Record(error=now)) is stops
