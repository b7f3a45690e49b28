"""Runs a proof's worker in a process of its own, on copies of the few files it needs."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from codemods.outcome import EditName, Plan
from codemods.verify.call_site import call_sites
from codemods.verify.job import Job, SideFiles, proof_from
from codemods.verify.proof import Options, Proof, failed, skipped
from codemods.verify.subject import (
    BLOCK_TABLE,
    BUFFERS,
    WARMUP,
    WARMUP_FUNCTION,
    Side,
    class_source,
    import_name,
    imported_roots,
    in_force,
    pad_slot_id,
    parse,
    sides,
    table_modules,
)

OLDEST_TRITON = (3, 6)
HOW_TO_GET = "pip install 'vllm-codemods[verify]'"
GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CC", "TRITON_LIBCUDA_PATH")
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TRITON_HIP_LLD_PATH")


def run_worker(
    name: str,
    module: str,
    plan: Plan,
    options: Options,
    *,
    interpret: bool = False,
    device: str = "cpu",
) -> Proof:
    """One row from `python -m codemods.verify.<module>`.

    `interpret` has Triton run kernels on the CPU; `device` is where the tree's tensors go. Whatever
    the worker does, a row comes back: a time-out and a crash are rows that fail, a missing
    dependency is a skipped one.
    """
    lacking = what_is_missing()
    if lacking is not None:
        return skipped(name, lacking)
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
        job = make_job(plan, options, Path(folder))
        if isinstance(job, str):
            return skipped(name, job)
        environment = _environment(Path(folder), interpret, device)
        job = replace(job, device=device)
        return replace(_run(name, module, job, options.timeout, environment), name=name)


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


def make_job(plan: Plan, options: Options, folder: Path) -> Job | str:
    """Copy the modules under proof into `folder`; or one line saying what the tree lacks."""
    made = {side.after: _side_files(side, folder) for side in sides(plan)}
    after = made[True]
    if isinstance(after, str):
        return after
    before = made.get(False)
    return Job(
        before=before if isinstance(before, SideFiles) else None,
        after=after,
        call_sites=call_sites(Side(plan, after=True)),
        targets=options.targets,
        max_num_tokens=options.max_num_tokens,
    )


def _side_files(side: Side, folder: Path) -> SideFiles | str:
    block_table = side.read(BLOCK_TABLE)
    if block_table is None:
        return f"the tree has no {side.name(BLOCK_TABLE)}"
    package = import_name(side)
    modules = {f"{package}.v1.worker.block_table": _copy(side, BLOCK_TABLE, block_table, folder)}
    roots = imported_roots(side, BLOCK_TABLE)
    for name, relative in table_modules(side, package).items():
        modules[name] = _copy(side, relative, side.read(relative) or b"", folder)
        roots |= imported_roots(side, relative)
    warmup = side.read(WARMUP) if _has_warmup(side) else None
    if warmup is not None:
        modules[f"{package}.v1.worker.gpu.warmup"] = _copy(side, WARMUP, warmup, folder)
        roots |= imported_roots(side, WARMUP)
    return SideFiles(
        package=package,
        modules=modules,
        spare=tuple(sorted(roots)),
        buffer_source=class_source(side, BUFFERS, "CpuGpuBuffer"),
        pad_slot_id=pad_slot_id(side),
        warmup=WARMUP_FUNCTION if warmup is not None else None,
    )


def _has_warmup(side: Side) -> bool:
    if not side.after or not in_force(side.plan, EditName.WARMUP):
        return False
    source = side.read(WARMUP)
    return source is not None and parse(source) is not None and WARMUP_FUNCTION.encode() in source


def _copy(side: Side, relative: str, source: bytes, folder: Path) -> str:
    path = folder / side.label / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source)
    return str(path)


def _run(name: str, module: str, job: Job, timeout: float, environment: dict[str, str]) -> Proof:
    with subprocess.Popen(
        [sys.executable, "-m", f"codemods.verify.{module}"],
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
            answer, complaints = started.communicate(job.to_json(), timeout=timeout)
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
