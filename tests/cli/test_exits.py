"""What ends a command, with which exit code and line."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from codemods.cli import exits
from codemods.engine.plan import FileChange, Outcome, Plan, Reason, Status, Verdict
from tests.plans import plan_of

EDITS = ("table",)


def plan(*changes: FileChange, refused: str = "") -> Plan:
    if not refused:
        return plan_of(changes=changes)
    outcome = Outcome("table", Status.REFUSED, Reason.NO_ANCHOR, refused, "a.py", 7)
    return plan_of([outcome], changes, verdict=Verdict.REFUSED)


def test_a_refusal_stops_with_its_place_and_reason() -> None:
    with pytest.raises(exits.Stop) as caught:
        exits.raise_if_refused(plan(refused="there is no such method"))
    assert caught.value.code == exits.REFUSED
    assert "a.py:7" in caught.value.lines[0]
    assert "there is no such method" in caught.value.lines[0]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"if a:\n    b\n    \n", b"if a:\n    c\n    \n", ""),
        (b"a = 1\n\x0c\nb = 2\n", b"a = 1\n\x0c\nb = 3\n", ""),
        (b"a = 1\r", b"a = 2\r", "bytes outside the edit"),
    ],
)
def test_bytes_that_the_parser_loses_stop_it(before: bytes, after: bytes, message: str) -> None:
    one = plan(FileChange("a.py", before, after, EDITS))
    if not message:
        exits.raise_if_unsound(one)
        return
    with pytest.raises(exits.Stop, match=message) as caught:
        exits.raise_if_unsound(one)
    assert caught.value.code == exits.REFUSED


def test_a_record_is_not_asked_to_be_python() -> None:
    exits.raise_if_unsound(plan(FileChange("v.dist-info/RECORD", b"a,b,1\n", b"a,c,2\n", EDITS)))


@pytest.mark.parametrize(
    ("wanted", "stops_it"), [(None, False), ("fixable", False), ("fixed", True)]
)
def test_another_verdict_than_required_stops_it(wanted: str | None, stops_it: bool) -> None:
    if not stops_it:
        exits.raise_if_unmet([plan()], Namespace(require=wanted))
        return
    with pytest.raises(exits.Stop, match="fixed") as caught:
        exits.raise_if_unmet([plan()], Namespace(require=wanted))
    assert caught.value.code == exits.FAILED


def test_a_tree_without_changes_goes_on(tmp_path: Path) -> None:
    exits.raise_if_dirty(tmp_path, ())
    exits.raise_if_refused(plan())
