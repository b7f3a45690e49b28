"""The driver of benchmarks/gpu, with a server that only looks like vLLM's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "gpu"

FAKE_SERVER = """
import json, os, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AFTER = "after" in __file__
CACHE = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
NAME = "_compute_slot_mapping_kernel"
if "--enforce-eager" in sys.argv:
    sys.exit("no such luck")

def compile_once(key):
    folder = CACHE / key
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ttir").write_text("")
        return True
    return False

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
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = len(body.get("prompt") or body["input"][0])
        key = "any" if AFTER else "one" if tokens == 1 else "16" if tokens % 16 == 0 else "other"
        if compile_once(key):
            print(f"(EngineCore pid=1) WARNING 05-20 08:00:01 [jit_monitor.py:103] Triton kernel "
                  f"JIT compilation during inference: {NAME}. This causes", flush=True)
        self.answer(500 if tokens == 33 else 200, {})

print("Kernel JIT monitor activated", flush=True)
if AFTER:
    compile_once("any")
port = int(sys.argv[sys.argv.index("--port") + 1])
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What unpack.sh makes, with a fake vLLM of one release on both sides."""
    for side in ("trees", "after"):
        package = tmp_path / side / "0.23.0" / "vllm" / "entrypoints" / "openai"
        package.mkdir(parents=True)
        (package / "api_server.py").write_text(FAKE_SERVER)
    return tmp_path


def drive(root: Path, *arguments: str) -> tuple[dict[str, dict], str]:
    out = root / "out"
    command = [sys.executable, str(BENCHMARKS / "serve.py"), str(root), "--out", str(out)]
    done = subprocess.run(
        [*command, "--commit", "abc", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    lines = (out / "serve.jsonl").read_text().splitlines()
    return {result["name"]: result for result in map(json.loads, lines)}, done.stdout


def test_a_pair_is_served_and_its_compiles_are_told_apart(root: Path) -> None:
    results, table = drive(root, "--only", "0.23.0-dense")
    before, after = results["0.23.0-dense-before"], results["0.23.0-dense-after"]
    assert before["slot_mapping_kernels_at_start"] == 0
    compiled = [request["compiled"] for request in before["requests"]]
    assert compiled[:3] == [{"_compute_slot_mapping_kernel": 1}] * 3
    assert compiled[3:] == [{}] * 5
    assert after["slot_mapping_kernels_at_start"] == 1
    assert not any(request["compiled"] for request in after["requests"])
    assert "0.23.0-dense-before" in table
    assert "NAMES it" in table


def test_the_monitor_is_read_with_the_process_that_spoke(root: Path) -> None:
    results, _ = drive(root, "--only", "0.23.0-dense")
    (report,) = results["0.23.0-dense-before"]["monitor"]
    assert report == {"process": "EngineCore", "kernel": "_compute_slot_mapping_kernel", "count": 3}
    assert results["0.23.0-dense-after"]["monitor"] == []


def test_a_server_that_does_not_start_does_not_stop_the_others(root: Path) -> None:
    results, _ = drive(root, "--only", "0.23.0-(dense|eager)")
    assert "no such luck" in results["0.23.0-eager-before"]["error"]
    assert results["0.23.0-dense-before"]["startup_s"] is not None


def test_a_refused_request_is_a_result(root: Path) -> None:
    results, table = drive(root, "--only", "0.23.0-dense")
    statuses = [request["status"] for request in results["0.23.0-dense-before"]["requests"]]
    assert statuses == [[200], [200], [200], [200], [200], [500], [200], [200] * 4]
    assert "HTTP [500]" in table


def test_what_is_measured_is_not_measured_again(root: Path) -> None:
    first, _ = drive(root, "--only", "0.23.0-dense")
    second, _ = drive(root, "--only", "0.23.0-dense")
    assert second == first


def test_every_result_says_where_it_was_measured(root: Path) -> None:
    results, _ = drive(root, "--only", "0.23.0-dense")
    about = results["0.23.0-dense-after"]["about"]
    assert about["commit"] == "abc"
    assert set(about) == {"date", "gpu", "gpus", "driver", "torch", "triton", "commit"}
