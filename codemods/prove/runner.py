"""Runs a proof in a process of its own, with a time limit and little of the user's environment."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

from codemods.engine.programs import safe_path
from codemods.prove import processes
from codemods.prove.job import NoAnswerError, Question, proof_from
from codemods.prove.proof import NOT_INSTALLED, Proof, failed

OLDEST_TRITON = (3, 6)
GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CC", "TRITON_LIBCUDA_PATH")
KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TRITON_HIP_LLD_PATH")
_OURS = Path(__file__).resolve().parents[2]  # the folder that holds this package
# Python's isolated mode takes no module from the current folder. The tool's own are found by path.
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from codemods.prove.job import start; start(sys.argv[2], int(sys.argv[3]))"
)


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
    """The row called `name`, which `module` answers to `job` in a Python of its own.

    `folder` is its working folder and holds what it writes; `timeout` is in seconds. `interpret`
    has Triton run kernels on the CPU; `device` is where the tree's tensors go. Whatever the process
    does, a row comes back: a time-out and a crash are rows that fail.
    """
    token = os.urandom(16).hex()
    question = Question(token, name, job, _import_path())
    ended = processes.run(
        [sys.executable, "-I", "-B", "-W", "ignore", "-c", _START, str(_OURS), module],
        folder=folder,
        environment=_environment(folder, interpret, device),
        timeout=timeout,
        stdin=question.to_json().encode(),
        answers=True,
    )
    if ended.status is None:
        return failed(name, f"did not end within {timeout:g} s and was stopped")
    try:
        return proof_from(ended.answer, question)
    except NoAnswerError as error:
        why = f"{error}: {_last_line(ended.complaints)}"
        return failed(name, f"its process ended with status {ended.status}; {why}")


def what_is_missing() -> str | None:
    """One line when torch, NumPy or a new enough Triton is not here; none of them is imported."""
    for needed in ("torch", "numpy", "triton"):
        if importlib.util.find_spec(needed) is None:
            return f"{needed} {NOT_INSTALLED}"
    version = triton_version()
    if version is None:
        return "the installed triton does not say its version: pip install 'triton>=3.6'"
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
        "PATH": safe_path(),
        "TMPDIR": str(folder),
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_INTERPRET": "1" if interpret else "0",
    }


def _import_path() -> list[str]:
    """Where the process finds modules: as here, but never in the current folder for its own sake.

    `python -m` puts that folder first, and it may be the tree.
    """
    own = str(Path(__file__).resolve().parents[2])
    here = os.getcwd()
    return [path for path in sys.path if path and (path != here or path == own)]


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no message"
