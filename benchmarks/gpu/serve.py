"""Serve tiny models with real vLLM, before and after the rewrite, and time the first requests.

    python benchmarks/gpu/serve.py ROOT --out OUT --commit HASH [--gpus 1] [--only REGEX]

ROOT is what unpack.sh made: site/, trees/, after/, models/. Servers start in waves, several on one
GPU; once all of a wave are up, or given up, they are asked one after another, so that no start
disturbs a latency. Each has new Triton and vLLM caches. A result is written as soon as it is there
and is not measured again by a later run; the last lines are a table of all results so far.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jobs import Job, jobs, waves
from record import Record, machine, read
from server import Server, is_slot_mapping_kernel

FIRST_PORT = 21000
STARTUP_LIMIT_S = 280.0
WAVE_S = 150.0
SETTLE_S = 1.0


def wait_for(servers: list[Server], limit_s: float) -> None:
    """Return once every server is up or dead, or `limit_s` have passed."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and any(server.poll() == "starting" for server in servers):
        time.sleep(0.25)


def measure(server: Server, record: Record, at_once: int) -> None:
    """Ask one server and record what came of it; a fault is a result too."""
    at_start = server.compiled()
    try:
        requests = server.ask() if server.poll() == "up" else []
        result = server.result(requests, at_start)
    except Exception as error:
        result = {"kind": "serve", "name": server.job.name, "error": repr(error)}
    record.add(result | {"at_once": at_once})
    print(row(result), flush=True)


def run_wave(wave: list[Job], root: Path, record: Record, python: str, limit_s: float) -> None:
    servers = []
    for number, job in enumerate(wave):
        work = root / "work" / job.name
        shutil.rmtree(work, ignore_errors=True)
        servers.append(Server(job, root, work, FIRST_PORT + number, python))
    try:
        wait_for(servers, limit_s)
        time.sleep(SETTLE_S)
        for server in servers:
            measure(server, record, len(wave))
    finally:
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(Server.stop, servers))


def row(result: dict[str, Any]) -> str:
    """One line: name, start-up, latency of each request, kernels the monitor named."""
    if not result.get("requests"):
        return f"{result['name']:34} FAILED {result.get('error', '')[-160:]!r}"
    times = " ".join(f"{request['ms']:7.0f}" for request in result["requests"])
    kernels = sorted({report["kernel"] for report in result["monitor"]})
    ours = sum(is_slot_mapping_kernel(kernel) for kernel in kernels)
    compiles = sum(
        count
        for request in result["requests"]
        for kernel, count in request["compiled"].items()
        if is_slot_mapping_kernel(kernel)
    )
    bad = [code for request in result["requests"] for code in request["status"] if code != 200]
    return (
        f"{result['name']:34} up {result['startup_s']:5.0f} s |{times} ms | slot-mapping: "
        f"{result['slot_mapping_kernels_at_start']} before, {compiles} during requests, "
        f"monitor {'NAMES it' if ours else 'silent on it'} (+{len(kernels) - ours} others)"
        + (f" HTTP {bad}" if bad else "")
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--only", default="", help="a regular expression over job names")
    parser.add_argument("--at-once", type=int, default=14)
    parser.add_argument("--for-s", type=float, default=540.0, help="start no wave past this")
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    begun = time.monotonic()
    about = machine(args.python, args.commit)
    print(about, flush=True)
    record = Record(args.root / "serve.jsonl", args.out / "serve.jsonl", about)
    done = record.done()
    todo = [job for job in jobs(args.gpus) if re.search(args.only, job.name)]
    todo = [job for job in todo if job.name not in done]
    for wave in waves(todo, args.at_once):
        left = args.for_s - (time.monotonic() - begun)
        if left < WAVE_S:
            print(f"no time left for {[job.name for job in wave]}", flush=True)
            continue
        run_wave(wave, args.root, record, args.python, min(STARTUP_LIMIT_S, left - 60))
        print(f"-- wave of {len(wave)} done at {time.monotonic() - begun:.0f} s", flush=True)
    results = read(record.kept)
    shutil.copy(record.kept, args.out / "serve.jsonl") if results else None
    print("\n".join(row(result) for result in results))
    logs = {r["name"]: args.root / "work" / r["name"] / "log" for r in results if "error" in r}
    with (args.out / "failed-logs.txt").open("w") as out:
        for name, log in logs.items():
            out.write(f"===== {name}\n{log.read_text(errors='replace')[-60000:]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
