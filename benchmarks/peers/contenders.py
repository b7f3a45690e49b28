"""What is compared: this tool, four programs that apply a patch, and two that apply a rule."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import project
from .git import CLEAN, git
from .subjects import PATCHED_FORK, PATCHED_RELEASE, Patch, Subject, nearest

RULES = Path(__file__).with_name("rules")
TIME_LIMIT = 120


@dataclass(frozen=True)
class Contender:
    """One way to bring the fix into a tree; `run` works on a copy and gives its exit code."""

    name: str
    run: Callable[[Subject, Path], int]


def contenders(made: Mapping[str, Patch], programs: Path) -> list[Contender]:
    """All of them; `made` are the patches, `programs` the folder of ast-grep and semgrep."""
    choices: dict[str, Callable[[Subject], Patch]] = {
        "patch of 0.21.0": partial(_of_one_release, made),
        "nearest patch": partial(nearest, made),
    }
    appliers = {
        "git apply": ["git", "apply", "{}"],
        "git apply -3": ["git", "apply", "-3", "{}"],
        "patch": ["patch", "-p1", "-N", "-i", "{}"],
        "wiggle": wiggle("{}"),
    }
    patchers = [
        Contender(f"{name}, {which}", partial(_patch, command, choose))
        for name, command in appliers.items()
        for which, choose in choices.items()
    ]
    rules = [
        Contender("ast-grep rule", partial(_run, ast_grep(programs))),
        Contender("semgrep rule", partial(_run, semgrep(programs))),
    ]
    ours = Contender("vllm-codemods", partial(_run, [*project.COMMAND, "apply", "."]))
    return [ours, *patchers, *rules]


def wiggle(patch: str) -> list[str]:
    return ["wiggle", "--replace", "--merge", "--patch", "--strip=1", patch]


def ast_grep(programs: Path, *paths: str) -> list[str]:
    rules = str(RULES / "ast-grep.yml")
    return [str(programs / "ast-grep"), "scan", "--rule", rules, "--update-all", *(paths or ["."])]


def semgrep(programs: Path, *paths: str) -> list[str]:
    rules = str(RULES / "semgrep.yml")
    quiet = ["--metrics=off", "--disable-version-check", "--quiet"]
    return [
        str(programs / "semgrep"),
        "scan",
        "--config",
        rules,
        "--autofix",
        *quiet,
        *(paths or ["."]),
    ]


def missing(programs: Path) -> list[str]:
    """What has to be installed first."""
    system = [name for name in ("git", "patch", "wiggle", "time") if shutil.which(name) is None]
    return system + [n for n in ("ast-grep", "semgrep", "py-spy") if not (programs / n).exists()]


def versions(programs: Path) -> dict[str, str]:
    """Each program and its version; only of those that are there."""
    asked = {
        "git": ["git", "--version"],
        "patch": ["patch", "--version"],
        "wiggle": ["wiggle", "--version"],
        "ast-grep": [str(programs / "ast-grep"), "--version"],
        "semgrep": [str(programs / "semgrep"), "--version"],
        "ruff": [str(project.RUFF), "--version"],
    }
    found = {"vllm-codemods": project.version()}
    for name, command in asked.items():
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        line = (ran.stdout + ran.stderr).strip().splitlines()[0]
        found[name] = next(word for word in line.split() if word[0].isdigit())
    return found


def _of_one_release(made: Mapping[str, Patch], subject: Subject) -> Patch:
    return made[PATCHED_RELEASE if subject.kind == "release" else PATCHED_FORK]


def _patch(
    command: list[str], choose: Callable[[Subject], Patch], subject: Subject, tree: Path
) -> int:
    patch = choose(subject)
    if "-3" in command:
        patch.give_objects(tree)
    file = tree / ".git" / "the.patch"  # where no applier and no comparison looks
    file.write_bytes(patch.aimed_at(subject))
    return _run([word.format(file) for word in command], subject, tree)


def _run(command: list[str], subject: Subject, tree: Path) -> int:
    environment = {**CLEAN, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    git(tree, "update-index", "-q", "--refresh")  # as in a repository that someone works in
    ran = subprocess.run(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIME_LIMIT,
        start_new_session=True,  # with no terminal there is nobody to ask
    )
    return ran.returncode
