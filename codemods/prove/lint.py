"""Proof 2: ruff, git and, if asked for, mypy find nothing in the changed files that was not there.

ruff and mypy run under the tree's own settings. Where the tree has none, as in a release from PyPI,
ruff's defaults hold: no settings above the tree are read.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codemods.engine.plan import FileChange, Plan
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.subject import Subject

NAME = "lint"
MYPY = "mypy"
RUFF_SETTINGS = ("ruff.toml", ".ruff.toml")
HOW_TO_GET = "pip install 'vllm-codemods[verify]'"


class UnavailableError(Exception):
    """A tool cannot be used here; the message says why, and how to get it."""


@dataclass(frozen=True)
class Ruff:
    """ruff on bytes, as if they were a file of the tree."""

    command: tuple[str, ...]
    root: Path

    @staticmethod
    def of(plan: Plan) -> Ruff:
        if importlib.util.find_spec("ruff") is not None:
            command: tuple[str, ...] = (sys.executable, "-m", "ruff")
        elif (found := shutil.which("ruff")) is not None:
            command = (found,)
        else:
            raise UnavailableError(f"ruff is not installed: {HOW_TO_GET}")
        return Ruff(command, plan.tree.root.resolve())

    def formatted(self, path: str, source: bytes) -> bool:
        """Whether `ruff format` would leave the file alone."""
        return self._run(path, source, "format", "--check").returncode == 0

    def complaints(self, path: str, source: bytes) -> Counter[str]:
        """What `ruff check` says, as code and message, without the line."""
        answer = self._run(path, source, "check", "--output-format", "json")
        return Counter(f"{item['code']} {item['message']}" for item in json.loads(answer.stdout))

    def _run(self, path: str, source: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        settings = ("--force-exclude",) if has_ruff_settings(self.root, path) else ("--isolated",)
        # ruff looks for settings above the name as it is given, so the name is a whole one.
        name = str(self.root / path)
        answer = subprocess.run(
            [*self.command, *words, "--no-cache", *settings, "--stdin-filename", name, "-"],
            input=source,
            capture_output=True,
            cwd=self.root,
            check=False,
        )
        if answer.returncode not in (0, 1):
            raise UnavailableError(
                f"ruff does not take the tree's settings: {_first_line(answer.stderr)}"
            )
        return answer


def prove(subject: Subject, _: Options) -> Proof:
    plan = subject.plan
    figures: dict[str, int | float | str] = {"files": len(plan.changes)}
    if not plan.changes:
        return passed(NAME, "no file changes, so there is nothing to compare", **figures)
    lacking: list[str] = []
    worse: list[str] = []
    for check in (_ruff, _git):
        try:
            worse += check(plan, figures)
        except UnavailableError as reason:
            lacking.append(str(reason))
    if worse:
        return failed(NAME, "; ".join(worse), **figures)
    if lacking:
        return skipped(NAME, "; ".join(lacking), **figures)
    whose = (
        "the tree's settings" if figures["own_settings"] else "ruff's defaults, the tree has none"
    )
    return passed(NAME, f"ruff and git find nothing that was not there before ({whose})", **figures)


def _ruff(plan: Plan, figures: dict[str, int | float | str]) -> list[str]:
    ruff = Ruff.of(plan)
    worse: list[str] = []
    unformatted = 0
    for change in plan.changes:
        if not ruff.formatted(change.path, change.before):
            unformatted += 1
        elif not ruff.formatted(change.path, change.after):
            worse.append(f"{change.path} is no longer as ruff format leaves it")
        new = ruff.complaints(change.path, change.after)
        new.subtract(ruff.complaints(change.path, change.before))
        worse += [f"{change.path}: {what}" for what, count in sorted(new.items()) if count > 0]
    figures["unformatted_before"] = unformatted
    figures["own_settings"] = sum(
        has_ruff_settings(plan.tree.root.resolve(), change.path) for change in plan.changes
    )
    return worse


def _git(plan: Plan, _: dict[str, int | float | str]) -> list[str]:
    """`git diff --check` of each file, where a carriage return is no error if the file has them."""
    git = shutil.which("git")
    if git is None:
        raise UnavailableError("git is not installed: take it from the system's packages")
    worse: list[str] = []
    for change in plan.changes:
        with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
            for name, data in (("before", change.before), ("after", change.after)):
                (Path(folder) / name).write_bytes(data)
            answer = subprocess.run(
                [git, *_line_ends(change), "diff", "--no-index", "--check", "before", "after"],
                capture_output=True,
                cwd=folder,
                env={"PATH": str(Path(git).parent), "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder},
                check=False,
            )
        found = answer.stdout.decode("utf-8", "replace").splitlines()
        worse += [
            line.replace("after:", f"{change.path}:", 1)
            for line in found
            if line.startswith("after:")
        ]
    return worse


def _line_ends(change: FileChange) -> tuple[str, ...]:
    return ("-c", "core.whitespace=cr-at-eol") if b"\r\n" in change.before else ()


def prove_types(subject: Subject, options: Options) -> Proof:
    """mypy on the changed files, before and after; the tree on the disk stays as it is."""
    plan, timeout = subject.plan, options.timeout
    if importlib.util.find_spec("mypy") is None:
        return skipped(MYPY, "mypy is not installed: pip install mypy")
    paths = [change.path for change in plan.changes]
    if not paths:
        return passed(MYPY, "no file changes, so there is nothing to compare", files=0)
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
        shadows: list[str] = []
        for index, change in enumerate(plan.changes):
            shadow = Path(folder) / f"{index}.py"
            shadow.write_bytes(change.after)
            shadows += ["--shadow-file", change.path, str(shadow)]
        try:
            before = _mypy(plan, paths, [], folder, timeout)
            after = _mypy(plan, paths, shadows, folder, timeout)
        except UnavailableError as reason:
            return skipped(MYPY, str(reason))
    figures = {"files": len(paths), "errors_before": before.total(), "errors_after": after.total()}
    new = sorted((after - before).elements())
    if new:
        return failed(MYPY, f"{len(new)} new: {'; '.join(new[:3])}", **figures)
    return passed(MYPY, "no new error under the tree's own settings", **figures)


def _mypy(
    plan: Plan, paths: list[str], shadows: list[str], folder: str, timeout: float
) -> Counter[str]:
    """Errors in the changed files, without their lines.

    Raises UnavailableError when mypy cannot judge.
    """
    try:
        answer = subprocess.run(
            [
                *(sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty"),
                *("--hide-error-context", "--cache-dir", f"{folder}/cache", *shadows, *paths),
            ],
            capture_output=True,
            cwd=plan.tree.root,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"mypy did not end within {timeout:g} s") from None
    if answer.returncode not in (0, 1):
        raise UnavailableError(
            f"mypy cannot check the tree: {_first_line(answer.stdout + answer.stderr)}"
        )
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return Counter(found for line in lines if (found := _error(line, paths)) is not None)


def _error(line: str, paths: list[str]) -> str | None:
    match = re.match(r"(?P<path>.+?):\d+(?::\d+)?: error: (?P<message>.*)", line)
    if match is None or match["path"] not in paths:
        return None
    return f"{match['path']}: {match['message']}"


def has_ruff_settings(root: Path, path: str) -> bool:
    """Whether a file of the tree has ruff settings that are the tree's own.

    They count up to the top of the git checkout that the tree is part of, since vLLM may lie inside
    a bigger repository, and up to the root elsewhere.
    """
    for folder in _folders(root, path):
        if any((folder / name).is_file() for name in RUFF_SETTINGS):
            return True
        project = folder / "pyproject.toml"
        if project.is_file() and re.search(
            rb"^\s*\[+tool\.ruff\b", project.read_bytes(), re.MULTILINE
        ):
            return True
    return False


def _folders(root: Path, path: str) -> Iterator[Path]:
    inside = (root / path).parent
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    for folder in (inside, *inside.parents):
        yield folder
        if folder == top:
            return


def _first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[0][:200] if lines else "it says nothing"
