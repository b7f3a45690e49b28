"""What is run in a tree beside serving: vLLM's own tests, a live batch, the tool's GPU proofs.

Each function runs one process in a process group of its own and returns one result.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from cases import BEFORE, V1
from server import Served, environment
from trees import ROOT

HERE = Path(__file__).parent
# vLLM's own tests of the runner and, where a release has them, of the zeroer.
MODULES = ("tests/v1/worker/test_gpu_model_runner.py", "tests/v1/worker/test_kv_block_zeroer.py")
Result = dict[str, Any]


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


def fresh(work: Path, name: str) -> Path:
    folder = work / name.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def live_batch(tree: Served, model: str, work: Path, models: Path, limit_s: float) -> Result:
    """live.py in the tree."""
    name = f"{tree.label}/live-{model}/{tree.side}"
    folder = fresh(work, name)
    command = [sys.executable, str(HERE / "live.py"), str(models / model), tree.package]
    command += ["before" if tree.side == BEFORE else "after", str(folder / "live.json")]
    ended = run(command, folder, environment(tree, folder, V1), folder / "log", limit_s)
    result = {"kind": "live", "name": name, "tree": tree.label, "model": model, "side": tree.side}
    if ended != "done" or not (folder / "live.json").exists():
        return result | {"error": f"{ended}: {tail(folder / 'log')}"}
    return result | json.loads((folder / "live.json").read_text())


def own_tests(tree: Served, work: Path, models: Path, limit_s: float) -> Result:
    """vLLM's own test modules, from the tree's own tests/."""
    name = f"{tree.label}/tests/{tree.side}"
    folder = fresh(work, name)
    modules = [module for module in MODULES if (tree.folder / module).exists()]
    result = {"kind": "tests", "name": name, "tree": tree.label, "side": tree.side}
    result |= {"modules": modules}
    if not modules:
        return result | {"error": f"the tree has no {MODULES[0]}"}
    env = environment(tree, folder, {**V1, "HF_HOME": str(models)})
    # vLLM's tests listen on one fixed port.
    command = [sys.executable, str(HERE / "alone.py"), sys.executable, "-m", "pytest", "-q"]
    command += ["--no-header", "-p", "no:cacheprovider", f"--junitxml={folder / 'junit.xml'}"]
    ended = run([*command, *modules], tree.folder, env, folder / "log", limit_s)
    if not (folder / "junit.xml").exists():
        return result | {"error": f"{ended}: {tail(folder / 'log')}"}
    return result | {"ended": ended, "tests": outcomes(folder / "junit.xml")}


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


def broken(before: Result, after: Result) -> list[str]:
    """Tests that passed before the rewrite, or were added by it, and do not pass after it."""
    return [
        name
        for name, verdict in sorted(after["tests"].items())
        if verdict.startswith("failed") and before["tests"].get(name, "passed") == "passed"
    ] + [name for name in before["tests"] if name not in after["tests"]]


def gpu_proofs(tree: Served, work: Path, options: list[str], limit_s: float) -> Result:
    """`vllm-codemods verify TREE --gpu --json`, as it is printed."""
    name = f"{tree.label}/verify"
    folder = fresh(work, name)
    env = environment(tree, folder, {})
    paths = [str(ROOT), *([str(tree.site)] if tree.site else [])]
    env |= {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    env.pop("COMPILE_LOG")
    command = [sys.executable, "-m", "codemods", "verify", str(tree.folder), "--gpu", "--json"]
    with (folder / "out").open("wb") as out, (folder / "log").open("wb") as log:
        done = subprocess.Popen([*command, *options], cwd=folder, env=env, stdout=out, stderr=log)
        try:
            code: int | str = done.wait(limit_s)
        except subprocess.TimeoutExpired:
            done.terminate()
            code = f"did not end in {limit_s:.0f} s"
    result = {"kind": "verify", "name": name, "tree": tree.label, "ended": code}
    try:
        return result | {"verify": json.loads((folder / "out").read_text())}
    except ValueError:
        return result | {"error": f"{code}: {tail(folder / 'log')}"}


def row(result: Result) -> str:
    """One line on a result of this module."""
    name = f"{result['name']:44}"
    if "error" in result:
        return f"{name} FAILED {str(result['error'])[-300:]!r}"
    if result["kind"] == "live":
        runs = result["runs"].items()
        return f"{name} " + "; ".join(
            f"{how}: {run['differing']} of {run['requests']} differ" for how, run in runs
        )
    if result["kind"] == "verify":
        rows = result["verify"].get("proofs", [])
        return f"{name} " + "; ".join(f"{row['proof']} {row['status']}" for row in rows)
    verdicts = [verdict.partition(":")[0] for verdict in result["tests"].values()]
    counts = {kind: verdicts.count(kind) for kind in ("passed", "failed", "skipped")}
    failed = [test for test, verdict in result["tests"].items() if verdict.startswith("failed")]
    return f"{name} {counts} {failed}"
