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
from .judge.verdict import Files, engine_faults, faults, stops_it

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
    runs = _runs(cases, pool)
    files = {folder: python_files(folder) for c in cases for folder in (c.before, c.after)}
    found = [
        list(faults(files[c.before], files[c.after], runs[c.before], runs[c.after])) for c in cases
    ]
    left = [c for c, faulty in zip(cases, found, strict=True) if c.kind == "fork" and not faulty]
    engines: dict[Path, Any] = {}
    for answers in pool.map(_interpreted, _parts(left)):
        engines |= answers
    later = {
        id(c): list(engine_faults(files[c.before], engines[c.before], engines[c.after]))
        for c in left
    }
    return [later.get(id(case), faulty) for case, faulty in zip(cases, found, strict=True)]


def stopped(cases: Sequence[Case], pool: Executor) -> list[bool]:
    """Whether each case's tree started before and does not any more."""
    runs = _runs(cases, pool)
    return [stops_it(runs[case.before], runs[case.after]) for case in cases]


def _runs(cases: Sequence[Case], pool: Executor) -> dict[Path, Record]:
    runs: dict[Path, Record] = {}
    for kind in sorted({case.kind for case in cases}):
        parts = _parts([case for case in cases if case.kind == kind])
        for found in pool.map(_run, [kind] * len(parts), parts):
            runs |= found
    return runs


def _parts(cases: Sequence[Case]) -> list[list[tuple[Path, str]]]:
    """The cases' folders, each once and with its package, some at a time."""
    found = sorted({(folder, c.package) for c in cases for folder in (c.before, c.after)})
    return [found[at : at + TREES_AT_ONCE] for at in range(0, len(found), TREES_AT_ONCE)]


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
    asked = [json.dumps(_placed(folder, package)) for folder, package in folders]
    answers = _output([str(project.ENGINE)], "".join(f"{line}\n" for line in asked))
    records = map(json.loads, answers.splitlines())
    return {folder: record for (folder, _), record in zip(folders, records, strict=True)}


def _placed(folder: Path, package: str) -> list[str]:
    """A package's parent folder and its name."""
    home = folder / package
    return [str(home.parent), home.name]


def _output(arguments: list[str], asked: str = "") -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(project.ROOT / "benchmarks"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [sys.executable, *arguments],
        input=asked,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"the judge failed: {ran.stderr.strip()[-600:]}")
    return ran.stdout
