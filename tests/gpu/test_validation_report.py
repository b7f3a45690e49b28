"""The record of what was measured, from made-up results."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import validation_report

KERNEL = "_compute_slot_mapping_kernel"
ABOUT = {
    "date": "2026-01-02", "gpu": "A GPU", "gpus": 1, "driver": "1.2", "torch": "2.11.0",
    "triton": "3.6.0", "commit": "abcdef0123456789",
}  # fmt: skip


def served(side: str, ms: float) -> dict[str, Any]:
    named = side == "before"
    compiled = {KERNEL: 1} if named else {}
    requests = [{"tokens": 17, "status": [200], "ms": ms, "compiled": compiled}] * 3
    monitor = [{"process": "EngineCore", "kernel": KERNEL, "count": 1}] if named else []
    return {
        "kind": "serve", "name": f"0.23.0-dense-{side}", "release": "0.23.0", "case": "dense",
        "side": side, "startup_s": 40.0, "slot_mapping_kernels_at_start": 0 if named else 1,
        "requests": requests, "monitor": monitor, "monitor_activated": 1, "about": ABOUT,
    }  # fmt: skip


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(validation_report, "DOCS", tmp_path)
    monkeypatch.setattr(validation_report, "RAW", tmp_path / "validation")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["validation_report.py", *arguments])
    return validation_report.main()


def lines(path: Path, *results: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    return str(path)


def test_results_become_a_table_and_a_chart(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = lines(docs / "new.jsonl", served("before", 1604.0), served("after", 600.0))
    assert run(monkeypatch, "--add", new) == 0
    text = (docs / "validation.md").read_text()
    row = "| dense | 0.23.0 | before | 40 | 1604 · 1604 · 1604 | 3 of 3 | 0, 3 | **yes**"
    assert row in text
    assert "| dense | 0.23.0 | after | 40 | 600 · 600 · 600 | 3 of 3 | 1, 0 | no | 0 |" in text
    assert "2026-01-02" in text
    assert "`abcdef012345`" in text
    assert ET.parse(docs / "validation.svg").getroot().tag.endswith("svg")


def test_check_tells_stale_from_fresh(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "--add", lines(docs / "new.jsonl", served("before", 9), served("after", 8)))
    assert run(monkeypatch, "--check") == 0
    (docs / "validation.md").write_text("something else")
    assert run(monkeypatch, "--check") == 1


def test_the_last_result_of_a_name_counts(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "--add", lines(docs / "a", served("before", 9)))
    run(monkeypatch, "--add", lines(docs / "b", served("before", 11)))
    (result,) = json.loads((docs / "validation" / "serve.json").read_text())
    assert result["requests"][0]["ms"] == 11


def test_a_later_failure_does_not_unsay_a_result(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "--add", lines(docs / "a", served("before", 9)))
    run(monkeypatch, "--add", lines(docs / "b", served("before", 9) | {"error": "no time left"}))
    (result,) = json.loads((docs / "validation" / "serve.json").read_text())
    assert "error" not in result


def test_what_was_not_run_is_said(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = served("after", 1) | {"error": "Traceback\n  File x\nOutOfMemoryError: no room"}
    run(monkeypatch, "--add", lines(docs / "new.jsonl", served("before", 9), bad))
    text = (docs / "validation.md").read_text()
    assert "| 0.23.0-dense-after | OutOfMemoryError: no room |" in text
    assert "| 0.26.0-hybrid-before | it was not run |" in text


def test_nothing_measured_makes_no_chart(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == 0
    assert "Nothing has been measured yet." in (docs / "validation.md").read_text()
    assert not (docs / "validation.svg").exists()
