"""Judges many trees at once, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import project
from .judge.record import Record
from .judge.verdict import V2_FLAG, Files, engine_faults, faults

TREES_AT_ONCE = 20


@dataclass(frozen=True)
class Case:
    """A tree before and after, laid out in two folders; `package` is the package's path in it."""

    kind: str
    package: str
    before: Path
    after: Path


def python_files(root: Path) -> Files:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*.py"))
        if ".git" not in path.parts
    }


def judge(cases: Sequence[Case], pool: Executor) -> list[list[str]]:
    """The faults of each case; only what has none so far is run by Triton's interpreter too."""
    runs: dict[Path, Record] = {}
    for kind in sorted({case.kind for case in cases}):
        parts = _parts([case for case in cases if case.kind == kind])
        for found in pool.map(_run, [kind] * len(parts), parts):
            runs |= found
    faulty = [_faults(case, runs) for case in cases]
    both = zip(cases, faulty, strict=True)
    left = [case for case, found in both if case.kind == "fork" and not found]
    engines: dict[Path, Any] = {}
    for answers in pool.map(_interpreted, _parts(left)):
        engines |= answers
    return [
        found or (_engine_faults(case, engines) if case.kind == "fork" else [])
        for case, found in zip(cases, faulty, strict=True)
    ]


def _parts(cases: Sequence[Case]) -> list[list[tuple[Path, str]]]:
    """The cases' folders, each once and with its package, some at a time."""
    found = sorted({(folder, c.package) for c in cases for folder in (c.before, c.after)})
    return [found[at : at + TREES_AT_ONCE] for at in range(0, len(found), TREES_AT_ONCE)]


def _faults(case: Case, runs: dict[Path, Record]) -> list[str]:
    before, after = python_files(case.before), python_files(case.after)
    return list(faults(before, after, runs[case.before], runs[case.after]))


def _engine_faults(case: Case, engines: dict[Path, Any]) -> list[str]:
    knows_v2 = any(V2_FLAG in text for text in python_files(case.before).values())
    was, now = engines[case.before], engines[case.after]
    return list(engine_faults(was, now, knows_v2=knows_v2))


def _run(kind: str, folders: Sequence[tuple[Path, str]]) -> dict[Path, Record]:
    words = [
        word
        for folder, package in folders
        for word in (_placed(folder, package) if kind == "fork" else [str(folder)])
    ]
    module = f"peers.judge.{kind}s"
    answers = json.loads(_output(["-m", module, *words]))
    return {
        folder: Record(**answers[words[at * (2 if kind == "fork" else 1)]])
        for at, (folder, _) in enumerate(folders)
    }


def _interpreted(folders: Sequence[tuple[Path, str]]) -> dict[Path, Any]:
    words = [word for folder, package in folders for word in _placed(folder, package)]
    answers = json.loads(_output([str(project.ENGINE), *words]))
    return {folder: answers[words[2 * at]] for at, (folder, _) in enumerate(folders)}


def _placed(folder: Path, package: str) -> list[str]:
    """A package's parent folder and its name."""
    home = folder / package
    return [str(home.parent), home.name]


def _output(arguments: list[str]) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(project.ROOT / "benchmarks"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"the judge failed: {ran.stderr.strip()[-600:]}")
    return ran.stdout
