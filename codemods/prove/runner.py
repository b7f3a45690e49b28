"""Runs a proof in a process of its own, with a time limit and little of the user's environment."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from codemods.prove.job import proof_from
from codemods.prove.proof import Proof, failed

OLDEST_TRITON = (3, 6)
HOW_TO_GET = "pip install 'vllm-codemods[verify]'"
GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CC", "TRITON_LIBCUDA_PATH")
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TRITON_HIP_LLD_PATH")


def run_worker(
    name: str,
    module: str,
    job: str,
    folder: Path,
    timeout: float,
    *,
    interpret: bool = False,
    device: str = "cpu",
) -> Proof:
    """The row called `name`, from `python -m MODULE` with `job` on its stdin.

    `folder` is its working folder and holds what it writes; `timeout` is in seconds. `interpret`
    has Triton run kernels on the CPU; `device` is where the tree's tensors go. Whatever the process
    does, a row comes back: a time-out and a crash are rows that fail.
    """
    environment = _environment(folder, interpret, device)
    return replace(_run(name, module, job, timeout, environment), name=name)


def what_is_missing() -> str | None:
    """One line when torch, NumPy or a new enough Triton is not here; none of them is imported."""
    for needed in ("torch", "numpy", "triton"):
        if importlib.util.find_spec(needed) is None:
            return f"{needed} is not installed: {HOW_TO_GET}"
    version = triton_version()
    if version is None:
        return f"the installed triton does not say its version: {HOW_TO_GET}"
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_TRITON:
        return (
            f"triton {version} is too old (AMD targets need an lld it does not bring, and its "
            f"interpreter fails with NumPy 2.4): pip install 'triton>=3.6'"
        )
    return None


def triton_version() -> str | None:
    """Triton's version as its own source says it: distributions of it go by several names."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    text = Path(spec.origin).read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^__version__ = ['\"](\d+\.\d+[^'\"]*)['\"]", text, re.MULTILINE)
    return found.group(1) if found else None


def _run(name: str, module: str, job: str, timeout: float, environment: dict[str, str]) -> Proof:
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=environment["TMPDIR"],
        env=environment,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as started:
        try:
            answer, complaints = started.communicate(job, timeout=timeout)
        except subprocess.TimeoutExpired:
            return failed(name, f"did not end within {timeout:g} s and was stopped")
        finally:
            # It leads a process group of its own: what it started ends with it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(started.pid, signal.SIGKILL)
    try:
        return proof_from(answer)
    except (ValueError, KeyError, TypeError):
        last = (complaints.strip().splitlines() or ["no message"])[-1]
        return failed(name, f"its process ended with status {started.returncode}: {last[:300]}")


def _environment(folder: Path, interpret: bool, device: str) -> dict[str, str]:
    """No proxy, no cache of the user's, no GPU unless asked: what the tree's code sees here."""
    cache = folder / "triton-cache"
    cache.mkdir()
    names = KEPT_VARIABLES if device == "cpu" else (*KEPT_VARIABLES, *GPU_VARIABLES)
    kept = {name: os.environ[name] for name in names if name in os.environ}
    hidden = dict.fromkeys(GPU_VARIABLES[:2], "") if device == "cpu" else {}
    return {
        **hidden,
        **kept,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
        "TMPDIR": str(folder),
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_INTERPRET": "1" if interpret else "0",
    }
