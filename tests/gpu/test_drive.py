"""The driver of benchmarks/gpu, with a server that only looks like vLLM's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "gpu"
KERNEL = "_compute_slot_mapping_kernel"

FAKE_SERVER = """
import json, os, pathlib, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AFTER = "/sides/" in __file__
NAME = "_compute_slot_mapping_kernel"
seen = set()
if "--enforce-eager" in sys.argv:
    sys.exit("no such luck")

def compile_once(key):
    if key in seen:
        return False
    seen.add(key)
    line = {"time": time.time(), "pid": 1, "process": "EngineCore",
            "module": "vllm.v1.worker.block_table", "kernel": NAME}
    with open(os.environ["COMPILE_LOG"], "a") as log:
        log.write(json.dumps(line) + "\\n")
    return True

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer(200, {})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        tokens = len(body.get("prompt") or body["input"][0])
        key = "any" if AFTER else "one" if tokens == 1 else "16" if tokens % 16 == 0 else "other"
        if compile_once(key):
            print(f"(EngineCore pid=1) WARNING 05-20 08:00:01 [jit_monitor.py:103] Triton kernel "
                  f"JIT compilation during inference: {NAME}. This causes", flush=True)
        self.answer(500 if tokens == 33 else 200, {"choices": [{"token_ids": [tokens]}]})

print("Kernel JIT monitor activated", flush=True)
if AFTER:
    compile_once("any")
time.sleep(float(os.environ.get("FAKE_START_S", 0)) * (0 if AFTER else 1))
port = int(sys.argv[sys.argv.index("--port") + 1])
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What prepare.py makes, with a fake vLLM of one release on all sides."""
    for folder in ("trees/0.23.0", "sides/0.23.0/slot-mapping", "sides/0.23.0/both"):
        tree = tmp_path / folder
        package = tree / "vllm" / "entrypoints" / "openai"
        package.mkdir(parents=True)
        (package / "api_server.py").write_text(FAKE_SERVER)
        about = {"package": "vllm", "sha256": folder}
        (tree / "served.json").write_text(json.dumps(about))
    return tmp_path


def drive(root: Path, *arguments: str) -> tuple[dict[str, dict[str, Any]], str]:
    out = root / "out"
    command = [sys.executable, str(BENCHMARKS / "drive.py"), str(root), "--out", str(out)]
    done = subprocess.run(
        [*command, "--commit", "abc", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    path = out / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {result["name"]: result for result in map(json.loads, lines)}, done.stdout


def test_three_pairs_are_timed_in_alternating_order(root: Path) -> None:
    results, _ = drive(root, "--stages", "dense")
    assert list(results) == [
        "0.23.0/dense/before/1", "0.23.0/dense/slot-mapping/1",
        "0.23.0/dense/slot-mapping/2", "0.23.0/dense/before/2",
        "0.23.0/dense/before/3", "0.23.0/dense/slot-mapping/3",
    ]  # fmt: skip
    assert all(result["timed"] for result in results.values())


def test_compiles_at_start_and_during_requests_are_counted_apart(root: Path) -> None:
    results, table = drive(root, "--stages", "counts", "--only", "block-size-32")
    before = results["0.23.0/block-size-32/before/1"]
    after = results["0.23.0/block-size-32/slot-mapping/1"]
    assert before["compiles"] == {"start": {}, "requests": {"EngineCore": {KERNEL: 3}}}
    assert after["compiles"] == {"start": {"EngineCore": {KERNEL: 1}}, "requests": {}}
    assert not after["timed"]
    assert "slot-mapping 0+3 NAMED" in table


def test_the_monitor_is_read_with_the_process_that_spoke(root: Path) -> None:
    results, _ = drive(root, "--stages", "counts", "--only", "block-size-32")
    (report,) = results["0.23.0/block-size-32/before/1"]["monitor"]
    assert report == {"process": "EngineCore", "kernel": KERNEL, "count": 3}
    assert results["0.23.0/block-size-32/slot-mapping/1"]["monitor"] == []


def test_each_server_has_its_own_start_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_START_S", "3")
    results, _ = drive(root, "--stages", "dense", "--only", "/1$")
    slow = results["0.23.0/dense/before/1"]["start_s"]
    quick = results["0.23.0/dense/slot-mapping/1"]["start_s"]
    assert slow > 3
    assert quick < 3


def test_a_server_that_does_not_start_does_not_stop_the_others(root: Path) -> None:
    results, _ = drive(root, "--stages", "counts", "--only", "eager|block-size-32")
    assert "no such luck" in results["0.23.0/eager/before/1"]["error"]
    assert results["0.23.0/block-size-32/before/1"]["start_s"] is not None


def test_a_refused_request_is_a_result(root: Path) -> None:
    results, table = drive(root, "--stages", "counts", "--only", "block-size-32")
    requests = results["0.23.0/block-size-32/before/1"]["requests"]
    assert [r["status"] for r in requests if r["tokens"] == 33] == [500]
    assert [r["status"] for r in requests if r["tokens"] != 33] == [200] * (len(requests) - 1)
    assert "HTTP [500]" in table


def test_what_is_measured_is_not_measured_again(root: Path) -> None:
    first, _ = drive(root, "--stages", "dense", "--only", "/1$")
    second, _ = drive(root, "--stages", "dense", "--only", "/1$")
    assert second == first


def test_nothing_is_started_without_time(root: Path) -> None:
    results, table = drive(root, "--stages", "dense,counts", "--for-s", "50")
    assert results == {}
    assert "no time left for" in table


def test_every_result_says_where_and_by_what_it_was_measured(root: Path) -> None:
    results, _ = drive(root, "--stages", "counts", "--only", "block-size-32/slot-mapping")
    result = results["0.23.0/block-size-32/slot-mapping/1"]
    assert result["tree_sha256"] == "sides/0.23.0/slot-mapping"
    assert result["about"]["commit"] == "abc"
    assert set(result["about"]) == {"date", "gpu", "gpus", "driver", "torch", "triton", "commit"}


@pytest.mark.parametrize("missing", ["both", "slot-mapping"])
def test_nothing_is_served_while_a_side_could_not_be_made(root: Path, missing: str) -> None:
    (root / "sides" / "0.23.0" / missing / "served.json").unlink()
    command = [sys.executable, str(BENCHMARKS / "drive.py"), str(root), "--out", str(root / "out")]
    done = subprocess.run(
        [*command, "--commit", "abc"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 2
    assert done.stdout.startswith(f"not made: 0.23.0/{missing};")
    assert not (root / "work").exists()


def test_hybrid_servers_come_a_few_at_a_time(root: Path) -> None:
    _, table = drive(root, "--stages", "hybrid-counts", "--for-s", "300")
    assert "no time left" in table
    results, table = drive(root, "--stages", "hybrid", "--for-s", "400")
    assert table.count("-- wave of 9") == 1
    assert len(results) == 9
