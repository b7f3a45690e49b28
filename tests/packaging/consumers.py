"""A tree, its plan, and what it means that a patch landed on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from codemods.engine.plan import EditName, FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.output.mail import SUBJECT, Mail
from codemods.output.patch import dep3, git_mailbox, unified

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURE = REPOSITORY / "fixtures/forks/base"
PATCH = "warm-up-slot-mapping.patch"
MAIL = Mail(
    "Ada Example <ada@example.org>", datetime(2026, 5, 20, 8, 0, tzinfo=timezone.utc), SUBJECT
)
FORMS = ("unified", "git", "dep3")
MAILBOXES = ("git", "dep3")
# What a consumer says when a patch does not fit to the byte.
COMPLAINT = re.compile(
    r"with fuzz|\(offset|whitespace|Stripping|malformed|garbage|CRLF"
    r"|warning(?!: extracting unsigned source package)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Case:
    """A tree on disk, as it is before, and the plan for it."""

    name: str
    root: Path
    plan: Plan

    @property
    def version(self) -> str:
        return self.plan.tree.version or "0"

    @property
    def has_a_real_plan(self) -> bool:
        """Whether the tool itself made the plan."""
        return self.name != "hand-made"

    def patch(self, form: str) -> bytes:
        """The plan in one form; byte for byte what the command writes for these fields."""
        if form == "unified":
            return unified(self.plan)
        return git_mailbox(self.plan, MAIL) if form == "git" else dep3(self.plan, MAIL)

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.root, to)
        return to

    def assert_fixed(self, tree: Path) -> None:
        """Every file is as apply writes it or as it was, and nothing was left lying about."""
        after = {change.path: change.after for change in self.plan.changes}
        self._assert_holds(tree, after)
        strays = [path for path in tree.rglob("*") if path.suffix in (".orig", ".rej")]
        assert not [path for path in strays if ".pc" not in path.parts]

    def assert_untouched(self, tree: Path) -> None:
        self._assert_holds(tree, {})

    def _assert_holds(self, tree: Path, after: dict[str, bytes]) -> None:
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                name = path.relative_to(self.root).as_posix()
                assert (tree / name).read_bytes() == after.get(name, path.read_bytes()), name
                mode = (tree / name).stat().st_mode & 0o111
                assert mode == path.stat().st_mode & 0o111, f"mode of {name}"


@dataclass(frozen=True)
class Ran:
    """A command's end: exit status, and both streams as text."""

    status: int
    output: str


def run(command: str | list[str], cwd: Path, **variables: str) -> Ran:
    """Run a command, a string by `sh -e`, with no terminal and none of the user's settings."""
    arguments = ["sh", "-ec", command] if isinstance(command, str) else command
    ended = subprocess.run(
        arguments,
        cwd=cwd,
        env=environment(cwd) | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # no terminal: GNU patch would ask on /dev/tty
        check=False,
    )
    return Ran(ended.returncode, ended.stdout.decode("utf-8", "replace"))


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Packager",
        "GIT_AUTHOR_EMAIL": "packager@example.org",
        "GIT_COMMITTER_NAME": "Packager",
        "GIT_COMMITTER_EMAIL": "packager@example.org",
    }


def run_well(command: str | list[str], cwd: Path, **variables: str) -> str:
    """Run a command that must succeed and must not complain; gives what it printed."""
    ran = run(command, cwd, **variables)
    assert ran.status == 0, f"{command}: exit {ran.status}\n{ran.output}"
    assert not COMPLAINT.search(ran.output), ran.output
    return ran.output


def with_command(folder: Path, **variables: str) -> dict[str, str]:
    """Variables that put `vllm-codemods`, run from this checkout, on the PATH."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin/vllm-codemods"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m codemods "$@"\n'
    )
    program.chmod(0o755)
    path = variables.get("PATH", environment(folder)["PATH"])
    return variables | {"PATH": f"{folder / 'bin'}:{path}"}


def tarball(case: Case, folder: Path, name: str) -> Path:
    """The tree as a source archive `name`.tar.gz that unpacks to `name`/."""
    source = case.copy(folder / "tarball" / name)
    run_well(
        ["tar", "-C", str(source.parent), "-czf", str(folder / f"{name}.tar.gz"), name], folder
    )
    shutil.rmtree(source.parent)
    return folder / f"{name}.tar.gz"


def commit_all(tree: Path) -> None:
    """Make `tree` a repository of one commit."""
    run_well("git init -q && git add -f . && git commit -qm base", tree)


def recipe(name: str) -> str:
    """The block of docs/packaging.md that has this name."""
    page = (REPOSITORY / "docs/packaging.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- recipe: {re.escape(name)} -->\n```\w+\n(.*?)```\n", page, re.DOTALL)
    assert found is not None, f"docs/packaging.md has no recipe {name!r}"
    return found[1]


def need(*tools: str) -> None:
    """Skip, and say why, where a tool is not installed."""
    for tool in tools:
        if shutil.which(tool, path=environment(Path())["PATH"]) is None:
            pytest.skip(f"{tool} is not installed")


KERNEL = """\
# The worker's comments hold an em dash \u2014 here.
import triton


@triton.jit
def _kernel(num_tokens, max_num_tokens):
    pass
\f
class Table:
    pass
"""


def hand_made(root: Path) -> Case:
    """A small tree with what trips consumers: a new last line, a mode, non-ASCII, a form feed."""
    kernel = KERNEL.encode()
    fixed = kernel.replace(b"@triton.jit\n", b'@triton.jit(do_not_specialize=["num_tokens"])\n')
    files = {
        "vllm/v1/worker/block_table.py": (kernel, fixed),
        "vllm/v1/worker/gpu/warmup.py": (b"x = 1", b"x = 1\n\n\ny = 2\n"),
        "vllm/v1/worker/gpu_worker.py": (b"a\nb\nc\n", b"a\nb\nnew\nc\n"),
    }
    for path, (before, _) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(before)
    (root / "vllm/v1/worker/gpu_worker.py").chmod(0o755)
    (root / "vllm/__init__.py").write_bytes(b"")
    edits = (EditName.KERNEL, EditName.WARMUP, EditName.WORKER)
    changes = tuple(
        FileChange(path, before, after, (edit,))
        for edit, (path, (before, after)) in zip(edits, files.items(), strict=True)
    )
    outcomes = tuple(
        Outcome(
            edit, Status.EDIT, Reason.ADDED, "Adds what is missing \u2014 once.", change.path, 1
        )
        for edit, change in zip(edits, changes, strict=True)
    )
    return Case(
        "hand-made", root, Plan(Tree(root, "vllm", "0.21.0"), outcomes, changes, Verdict.FIXABLE)
    )


def with_crlf(case: Case) -> Case:
    """The same tree with CRLF line ends throughout."""
    changes = tuple(
        replace(
            change,
            before=change.before.replace(b"\n", b"\r\n"),
            after=change.after.replace(b"\n", b"\r\n"),
        )
        for change in case.plan.changes
    )
    for change in changes:
        (case.root / change.path).write_bytes(change.before)
    return replace(case, plan=replace(case.plan, changes=changes))
