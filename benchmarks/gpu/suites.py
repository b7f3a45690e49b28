"""Everything on the GPU but serving: the live batch, and vLLM's own tests, before and after.

    python benchmarks/gpu/suites.py ROOT --out OUT --commit HASH [--only REGEX] [--at-once 14]

Runs `live.py` for the releases of every case, and tests/v1/worker/test_gpu_model_runner.py from
each release's sdist, pristine against the pristine tree and rewritten against the rewritten one.
Several at once; results are kept and copied out as serve.py does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from jobs import EVERY_CASE, RELEASES, SIDES
from record import Record, machine, read
from server import environment

TEST = "tests/v1/worker/test_gpu_model_runner.py"
HERE = Path(__file__).parent


def tree_of(root: Path, release: str, side: str) -> Path:
    return root / ("trees" if side == "before" else "after") / release


def run(command: list[str], cwd: Path, env: dict[str, str], log: Path, limit_s: float) -> str:
    """Run in a process group of its own, which is ended at the limit: `done`, or what failed."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"did not end in {limit_s:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return "done" if code == 0 else f"ended with {code}"


def live(root: Path, release: str, side: str, python: str, limit_s: float) -> dict[str, Any]:
    name = f"{release}-live-{side}"
    work = fresh(root, name)
    tree = tree_of(root, release, side)
    command = [python, str(HERE / "live.py"), str(root / "models/random"), side]
    command += [str(work / "live.json")]
    ended = run(command, work, environment(tree, root / "site", work), work / "log", limit_s)
    result = {"kind": "live", "name": name, "release": release, "side": side}
    if ended != "done" or not (work / "live.json").exists():
        return result | {"error": f"{ended}: {tail(work / 'log')}"}
    return result | json.loads((work / "live.json").read_text())


def suite(root: Path, release: str, side: str, python: str, limit_s: float) -> dict[str, Any]:
    name = f"{release}-tests-{side}"
    work = fresh(root, name)
    source = root / ("suites" if side == "before" else "suites-after") / release
    tree = tree_of(root, release, side)
    env = environment(tree, root / "site", work) | {"HF_HOME": str(root / "models")}
    # vLLM's tests listen on one fixed port.
    command = [python, str(HERE / "alone.py"), python, "-m", "pytest", "-q", "--no-header", TEST]
    command += ["-p", "no:cacheprovider", f"--junitxml={work / 'junit.xml'}"]
    ended = run(command, source, env, work / "log", limit_s)
    result = {"kind": "tests", "name": name, "release": release, "side": side, "ended": ended}
    if not (work / "junit.xml").exists():
        return result | {"error": f"{ended}: {tail(work / 'log')}"}
    return result | {"tests": outcomes(work / "junit.xml")}


def outcomes(junit: Path) -> dict[str, str]:
    """Each test's name and `passed`, `skipped: why` or `failed: why`."""
    found = {}
    for case in ET.parse(junit).getroot().iter("testcase"):
        name, verdict = case.get("name") or "?", "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                verdict = f"failed: {(child.get('message') or '')[:300]}"
            elif child.tag == "skipped" and verdict == "passed":
                verdict = f"skipped: {(child.get('message') or '')[:120]}"
        found[name] = verdict
    return found


def fresh(root: Path, name: str) -> Path:
    work = root / "work" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return work


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def row(result: dict[str, Any]) -> str:
    name = f"{result['name']:28}"
    if "error" in result:
        return f"{name} FAILED {result['error'][-300:]!r}"
    if result["kind"] == "live":
        runs = result["runs"].items()
        differing = "; ".join(f"{k}: {v['differing']} of {v['requests']} differ" for k, v in runs)
        return f"{name} {differing}"
    verdicts = [verdict.partition(":")[0] for verdict in result["tests"].values()]
    counts = {kind: verdicts.count(kind) for kind in ("passed", "failed", "skipped")}
    failed = [test for test, verdict in result["tests"].items() if verdict.startswith("failed")]
    return f"{name} {counts} {failed}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--only", default="", help="a regular expression over job names")
    parser.add_argument("--at-once", type=int, default=14)
    parser.add_argument("--for-s", type=float, default=540.0)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    begun = time.monotonic()
    record = Record(
        args.root / "suites.jsonl",
        args.out / "suites.jsonl",
        machine(args.python, args.commit),
    )
    done = record.done()
    todo = [(f"{r}-live-{s}", live, r, s) for r in EVERY_CASE for s in SIDES]
    todo += [(f"{r}-tests-{s}", suite, r, s) for r in RELEASES for s in SIDES]
    todo = [job for job in todo if re.search(args.only, job[0]) and job[0] not in done]

    def one(job: tuple[str, Any, str, str]) -> dict[str, Any]:
        name, action, release, side = job
        left = args.for_s - (time.monotonic() - begun)
        if left < 60:
            return {"name": name, "error": "no time left"}
        try:
            result: dict[str, Any] = action(args.root, release, side, args.python, left)
        except Exception as error:  # one job's fault must not keep the others
            result = {"name": name, "error": repr(error)}
        return result

    with ThreadPoolExecutor(args.at_once) as pool:
        for future in as_completed([pool.submit(one, job) for job in todo]):
            result = future.result()
            record.add(result)
            print(row(result), flush=True)
    results = read(record.kept)
    if results:
        shutil.copy(record.kept, args.out / "suites.jsonl")
    print(f"-- all in {time.monotonic() - begun:.0f} s")
    print("\n".join(row(result) for result in results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
