"""Time and memory: this tool, the least that LibCST costs, and the other contenders.

Commands of one group take turns, so that a slow moment of the machine hits them alike. Before each
run the tree is put back as it was; that is not timed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from . import contenders, project, stages
from .git import CLEAN, commit_all, committed, git

COPIES = 9
REFS = 30
REF_ROUNDS = 2
TIME = "/usr/bin/time"
_SILENT: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
WORKER = "vllm/v1/worker/gpu_worker.py"
# The least that a tool on LibCST does: start, parse what changes, and print or write it.
BARE = """\
import sys

import libcst

for path in sys.argv[2:]:
    with open(path, "rb") as file:
        text = libcst.parse_module(file.read()).bytes
    if sys.argv[1] == "print":
        sys.stdout.buffer.write(text)
    else:
        with open(path, "wb") as file:
            file.write(text)
"""


@dataclass(frozen=True)
class Timed:
    """A command that runs in a folder, and the exit code that it must have."""

    what: str
    command: Sequence[str]
    folder: Path
    expected: int = 0


@dataclass(frozen=True)
class Cost:
    """One run: seconds elapsed, and seconds of processor."""

    wall: float
    cpu: float


def results(work: Path, programs: Path, rounds: int) -> dict[str, Any]:
    release = one_release(work / "release")
    bare = work / "bare.py"
    bare.write_text(BARE, "utf-8")
    patch = work / "the.patch"
    patch.write_bytes(project.patch_for(release))
    names = changed_files(patch)
    shutil.copytree(release, work / "ten", symlinks=True)
    ten = ten_times(work / "ten")
    refs = many_refs(release)
    groups = {
        "one release": commands(release, bare, patch, names, programs),
        "ten times the files": commands(ten, bare, patch, names, programs),
    }
    rows = [
        {"group": group, "files": count(timed[0].folder), **row}
        for group, timed in groups.items()
        for row in measured(timed, rounds)
    ]
    many = ref_commands(release, refs, patch, names, work)
    rows += [{"group": f"{REFS} refs", **row} for row in measured(many, REF_ROUNDS)]
    parts = [
        part
        for verb in ("check", "diff", "apply")
        for part in stages.of(verb, release, programs, rounds)
    ]
    return {"changed": list(names), "rows": rows, "stages": parts}


def one_release(folder: Path) -> Path:
    shutil.copytree(project.whole_release(), folder, symlinks=True)
    return committed(folder)


def ten_times(folder: Path) -> Path:
    """Copies of the tree beside it, without the file by which a vLLM package is known."""
    inside = [path for path in folder.iterdir() if path.name != ".git"]
    for number in range(COPIES):
        copy = folder / "copies" / str(number)
        copy.mkdir(parents=True)
        for path in inside:
            if path.is_dir():
                shutil.copytree(path, copy / path.name, symlinks=True, copy_function=os.link)
            else:
                os.link(path, copy / path.name)
        (copy / WORKER).unlink()
    commit_all(folder, "ten times")
    return folder


def many_refs(repository: Path) -> list[str]:
    """Branches of one commit each, in each of which another line was added to the README."""
    names = [f"branch-{number}" for number in range(REFS)]
    for name in names:
        git(repository, "checkout", "-q", "-b", name, "main")
        with (repository / "NOTES.md").open("a") as file:
            file.write(f"{name}\n")
        commit_all(repository, name)
    git(repository, "checkout", "-q", "main")
    return names


def changed_files(patch: Path) -> tuple[str, ...]:
    lines = patch.read_text("utf-8").splitlines()
    return tuple(line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/"))


def commands(
    tree: Path, bare: Path, patch: Path, names: Sequence[str], programs: Path
) -> list[Timed]:
    libcst = [sys.executable, str(bare)]
    tool = project.COMMAND
    ruled = [name for name in names if not name.startswith("tests/")]  # the rules edit no tests
    return [
        Timed("bare LibCST, print", [*libcst, "print", *names], tree),
        Timed("bare LibCST, write", [*libcst, "write", *names], tree),
        Timed("vllm-codemods check", [*tool, "check", "."], tree, expected=1),
        Timed("vllm-codemods diff", [*tool, "diff", "."], tree),
        Timed("vllm-codemods apply", [*tool, "apply", "."], tree),
        Timed("git apply", ["git", "apply", str(patch)], tree),
        Timed("git apply -3", ["git", "apply", "-3", str(patch)], tree),
        Timed("patch", ["patch", "-p1", "-N", "-i", str(patch)], tree),
        Timed("wiggle", contenders.wiggle(str(patch)), tree),
        Timed("ast-grep rule", contenders.ast_grep(programs), tree),
        Timed("semgrep rule", contenders.semgrep(programs), tree),
        Timed("ast-grep rule, files named", contenders.ast_grep(programs, *ruled), tree),
        Timed("semgrep rule, files named", contenders.semgrep(programs, *ruled), tree),
    ]


def ref_commands(
    repository: Path, refs: Sequence[str], patch: Path, names: Sequence[str], work: Path
) -> list[Timed]:
    """Which of many branches need the fix, and on which does the patch land?"""
    check = " ".join([*project.COMMAND, "check"])
    out = work / "checked-out"
    checked_out = (
        f"for ref in {' '.join(refs)}; do rm -rf {out}; mkdir {out}; "
        f"git archive $ref | tar -x -C {out}; {check} {out} || test $? = 1 || exit 9; done"
    )
    index = f"GIT_INDEX_FILE={work / 'index'}"
    check_applies = (
        f"for ref in {' '.join(refs)}; do {index} git read-tree $ref && "
        f"{index} git apply --cached --check {patch} || exit 9; done"
    )
    found = [
        Timed("git archive, then vllm-codemods check", ["sh", "-c", checked_out], repository),
        Timed("git read-tree, then git apply --check", ["sh", "-c", check_applies], repository),
    ]
    if project.has_ref():
        flags = [word for ref in refs for word in ("--ref", ref)]
        command = [*project.COMMAND, "check", ".", *flags]
        found.append(Timed("vllm-codemods check --ref", command, repository, expected=1))
    return found


def measured(timed: Sequence[Timed], rounds: int) -> list[dict[str, Any]]:
    """A row for each command: in turns, after one round that shows its memory and is not timed."""
    memory = {one.what: memory_of(one) for one in timed}
    costs: dict[str, list[Cost]] = {one.what: [] for one in timed}
    for _ in range(rounds):
        for one in timed:
            costs[one.what].append(cost_of(one))
    return [{"what": what, **summary(costs[what]), "mib": memory[what]} for what in costs]


def summary(costs: Sequence[Cost]) -> dict[str, Any]:
    """Medians, and the quickest and slowest elapsed time, in milliseconds."""
    wall = [1000 * cost.wall for cost in costs]
    return {
        "runs": len(costs),
        "ms": round(median(wall), 1),
        "from": round(min(wall), 1),
        "to": round(max(wall), 1),
        "cpu_ms": round(1000 * median(cost.cpu for cost in costs), 1),
    }


def put_back(folder: Path) -> None:
    git(folder, "reset", "-q", "--hard")
    git(folder, "clean", "-fdqx")


def cost_of(timed: Timed) -> Cost:
    """Run a command once. Raises RuntimeError where it exits otherwise than expected."""
    put_back(timed.folder)
    start = perf_counter()
    process = subprocess.Popen(timed.command, cwd=timed.folder, env=CLEAN, **_SILENT)
    _, status, used = os.wait4(process.pid, 0)
    wall = perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    _check_exit(timed, process.returncode)
    return Cost(wall, used.ru_utime + used.ru_stime)


def memory_of(timed: Timed) -> float:
    """The most memory that one process of a command holds, in MiB.

    Linux counts what a process held before it became another program, so a child of this one shows
    at least what this one holds; GNU time is a small parent.
    """
    put_back(timed.folder)
    with tempfile.NamedTemporaryFile("r") as file:
        command = [TIME, "--quiet", "--format", "%M", "--output", file.name, *timed.command]
        ran = subprocess.run(command, cwd=timed.folder, env=CLEAN, check=False, **_SILENT)
        _check_exit(timed, ran.returncode)
        return round(int(file.read()) / 1024, 1)


def _check_exit(timed: Timed, code: int) -> None:
    if code != timed.expected:
        raise RuntimeError(f"{timed.what} exited {code}, not {timed.expected}")


def count(folder: Path) -> int:
    return git(folder, "ls-files", "-z").count(b"\0")
