"""The page and the chart of what was measured, from a small made-up example."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import validation_report  # noqa: E402

KERNEL = "_compute_slot_mapping_kernel"
ZERO = "_zero_kv_blocks_kernel"
ABOUT = {
    "date": "2026-01-02", "gpu": "A GPU", "gpus": 1, "driver": "1.2", "torch": "2.11.0",
    "triton": "3.6.0", "commit": "abcdef0123456789",
}  # fmt: skip
Result = dict[str, Any]

REPORTED = "3 → 0, **reported** → not reported"


def served(side: str, ms: float, run: int = 1, case: str = "dense", **more: Any) -> Result:
    """A server's result: before the rewrite its requests compile the kernel three times."""
    kernels = more.pop("kernels", {KERNEL} if side == "before" else set())
    compiled = {"EngineCore": dict.fromkeys(sorted(kernels), 3)} if kernels else {}
    monitor = [{"process": "EngineCore", "kernel": name, "count": 1} for name in sorted(kernels)]
    requests = [{"tokens": n, "status": 200, "ms": ms, "answer": [n]} for n in (17, 16, 1)]
    return {
        "kind": "serve", "name": f"0.23.0/{case}/{side}/{run}", "tree": "0.23.0", "case": case,
        "side": side, "run": run, "timed": True, "start_s": 40.0, "tree_sha256": side,
        "compiles": {"start": {}, "requests": compiled},
        "kernels": {"slot-mapping": [KERNEL], "kv-block-zeroing": [ZERO]},
        "requests": requests, "monitor": monitor, "monitor_activated": 1, "about": ABOUT, **more,
    }  # fmt: skip


def pairs(*times: tuple[float, float]) -> list[Result]:
    found = []
    for run, (before, after) in enumerate(times, start=1):
        found += [served("before", before, run), served("slot-mapping", after, run)]
    return found


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(validation_report, "DOCS", tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["validation_report.py", *arguments])
    return validation_report.main()


def add(docs: Path, monkeypatch: pytest.MonkeyPatch, *results: Result) -> str:
    path = docs / "new.jsonl"
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    assert run(monkeypatch, "--add", str(path)) == 0
    return (docs / "validation.md").read_text()


def test_three_pairs_become_medians_with_their_spread(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = add(docs, monkeypatch, *pairs((1000, 400), (1100, 380), (1050, 500)))
    row = f"| Triton | 0.23.0 | {REPORTED} | 1050 (1000 to 1100) | 400 (380 to 500) |"
    assert f"{row} 650 ms less | none |" in text
    assert "`abcdef012345`" in text
    assert "are equal token by token" in text


def test_two_pairs_are_no_times(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = add(docs, monkeypatch, *pairs((1000, 400), (1100, 380)))
    assert "| 3 → 0, **reported** → not reported | not timed | not timed |  | none |" in text
    assert not (docs / "validation.svg").exists()


def test_runs_that_overlap_show_no_difference(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = add(docs, monkeypatch, *pairs((700, 690), (720, 710), (690, 705)))
    assert "| no difference beyond the spread |" in text
    assert "less |" not in text


def test_where_upstream_compiles_at_start_there_is_nothing_to_gain(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [
        r | served(r["side"], ms, r["run"], kernels=set())
        for r, ms in zip(pairs((1, 1), (1, 1), (1, 1)), (7, 8, 9, 7, 8, 9), strict=True)
    ]
    assert "nothing to gain: upstream" in add(docs, monkeypatch, *results)  # fmt: skip
    assert "nothing to gain" in (docs / "validation.svg").read_text()


def test_a_slower_first_request_is_not_hidden(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = add(docs, monkeypatch, *pairs((400, 900), (410, 910), (420, 920)))
    assert "| **500 ms more** |" in text


def test_the_chart_has_an_error_bar_for_each_bar(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(docs, monkeypatch, *pairs((1000, 400), (1100, 380), (1050, 500)))
    chart = ET.parse(docs / "validation.svg").getroot()
    assert len([e for e in chart.iter() if e.get("class") == "error"]) == 2


def test_a_hybrid_shows_both_kernels_side_by_side(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [
        served("before", 1900, case="hybrid", timed=False, kernels={KERNEL, ZERO}),
        served("slot-mapping", 1500, case="hybrid", timed=False, kernels={ZERO}),
        served("both", 1100, case="hybrid", timed=False, kernels=set()),
    ]
    text = add(docs, monkeypatch, *results)
    cells = "0+3 → 0+0 → 0+0, reported: before | 0+3 → 0+3 → 0+0, reported: before, slot-mapping"
    assert f"| hybrid | 0.23.0 | {cells} | not timed | none |" in text


def test_a_hybrid_that_was_started_often_enough_shows_its_first_request(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = {"before": (1900, 1800, 2000), "slot-mapping": (1500, 1400, 1600), "both": (9, 8, 7)}
    results = [
        served(side, ms, run, case="hybrid", kernels={KERNEL, ZERO})
        for side, runs in took.items()
        for run, ms in enumerate(runs, 1)
    ]
    text = add(docs, monkeypatch, *results)
    assert "| 1900 (1800 to 2000) → 1500 (1400 to 1600) → 8 (7 to 9) |" in text


def test_a_hybrid_served_as_released_alone_makes_no_claim_of_the_rewrite(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = add(docs, monkeypatch, served("before", 9, case="hybrid", kernels={KERNEL, ZERO}))
    cell = "0+3 → not run → not run, reported: before"
    assert f"| hybrid | 0.23.0 | {cell} | {cell} | not timed | not run |" in text
    assert "| hybrid | slot-mapping, both | 0.23.0 |" in text


def test_an_answer_that_differs_is_listed(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = pairs((1000, 400))
    results[1]["requests"][0]["answer"] = [5]
    text = add(docs, monkeypatch, *results)
    assert "- 0.23.0, dense: slot-mapping: answers differ" in text
    assert "equal token by token" not in text


def test_a_failure_is_named_by_its_last_line(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = served("slot-mapping", 1) | {"error": "Traceback\n  File x\nOutOfMemoryError: no room"}
    text = add(docs, monkeypatch, served("before", 9), bad)
    assert "| 0.23.0/dense/slot-mapping/1 | OutOfMemoryError: no room |" in text


def test_a_server_that_ended_by_itself_is_a_failure_whatever_its_log_says(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = served("slot-mapping", 1) | {"error": "ended with -9:\nLoading weights"}
    text = add(docs, monkeypatch, served("before", 9), bad)
    assert "| 0.23.0/dense/slot-mapping/1 | Loading weights |" in text


@pytest.mark.parametrize(
    "error",
    ["not up in 260 s:\nCapturing CUDA graphs", "did not end in 98 s: ....", "Loading weights"],
)
def test_what_was_cut_off_is_not_run_and_no_failure(
    docs: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    cut = served("slot-mapping", 1, case="ngram") | {"error": error}
    text = add(docs, monkeypatch, served("before", 9, case="ngram"), cut)
    assert "## What failed" not in text
    assert "| 3 → not run, **reported** |" in text
    assert "| ngram | slot-mapping | 0.23.0 |" in text
    assert len(json.loads((docs / "validation" / "results.json").read_text())) == 1


def test_what_was_run_is_not_listed_as_not_run(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [served("before", 9, case="ngram"), served("slot-mapping", 1, case="ngram")]
    text = add(docs, monkeypatch, *both)
    assert "| ngram | before, slot-mapping | 0.26.0 |" in text
    assert not any(line.startswith("| ngram |") and "0.23.0 |" in line
                   for line in text.partition("## Not run")[2].splitlines())  # fmt: skip


def test_a_side_that_is_the_tree_as_released_is_said(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = served("slot-mapping", 1) | {"tree_sha256": "before"}
    text = add(docs, monkeypatch, served("before", 9), after)
    assert "- 0.23.0, dense: slot-mapping: the tree is not rewritten" in text


def test_an_embedding_is_kept_as_its_hash_and_still_compared(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [served("before", 9, case="pooling"), served("slot-mapping", 9, case="pooling")]
    for result, answer in zip(results, ("same", "other"), strict=True):
        result["requests"][0]["answer"] = answer
    assert "pooling: slot-mapping: answers differ" in add(docs, monkeypatch, *results)
    kept = (docs / "validation" / "results.json").read_text()
    assert '"other"' not in kept
    add(docs, monkeypatch, served("before", 8, run=2))
    again = json.loads((docs / "validation" / "results.json").read_text())
    assert [r for r in again if r["case"] == "pooling"] == json.loads(kept)


def test_proofs_are_counted_and_their_times_left_out(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"recipe": "slot-mapping", "proof": proof, "status": status, "figures": {"us": 2.5}}
        for proof, status in (("keys", "pass"), ("gpu-cost", "pass"), ("gpu-state", "fail"))
    ]
    verified = docs / "verify-0.21.0.json"
    verified.write_text(json.dumps({"tree": {"version": "0.21.0"}, "proofs": rows}))
    beside = docs / "new.jsonl"
    beside.write_text(json.dumps(served("before", 9)) + "\n")
    assert run(monkeypatch, "--add", str(verified), str(beside)) == 0
    row = "| `verify --gpu` | 0.21.0 | 2 of 3 rows pass, 1 fail; gpu-state fail |"
    assert row in (docs / "validation.md").read_text()
    assert "2.5" not in (docs / "validation" / "results.json").read_text()


def test_an_earlier_rewrites_counts_stand_apart_until_there_are_new_ones(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [served("before", 9, case="ngram"), served("slot-mapping", 1, case="ngram")]
    (docs / "validation").mkdir()
    (docs / "validation" / "earlier.json").write_text(json.dumps(old))
    first = add(docs, monkeypatch, served("before", 9))
    assert f"| {REPORTED} |" in first.partition("## With an earlier rewrite")[2]
    assert "| ngram | before, slot-mapping | 0.23.0, 0.26.0 |" in first
    assert "## With an earlier rewrite" not in add(docs, monkeypatch, *old)


@pytest.mark.parametrize("worse", [{"error": "no room"}, {"timed": False}])
def test_a_worse_result_does_not_replace_a_better(
    docs: Path, monkeypatch: pytest.MonkeyPatch, worse: dict[str, Any]
) -> None:
    add(docs, monkeypatch, served("before", 9))
    add(docs, monkeypatch, served("before", 11) | worse)
    (result,) = json.loads((docs / "validation" / "results.json").read_text())
    assert result["requests"][0]["ms"] == 9


def test_check_tells_stale_from_fresh(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(docs, monkeypatch, *pairs((1000, 400), (1100, 380), (1050, 500)))
    assert run(monkeypatch, "--check") == 0
    (docs / "validation.md").write_text("something else")
    assert run(monkeypatch, "--check") == 1


def test_the_page_and_the_chart_are_what_the_results_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--check") == 0, capsys.readouterr().out
