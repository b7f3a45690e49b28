"""Nothing that a repository's configuration, attributes or hooks name is ever run.

Every key of the installed git's own list names a program that leaves a mark, and so does every
hook; the attributes send every file through drivers. A tree's modules leave marks too.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forks.trees import fork
from tests.repositories import commit, git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
FILE = "vllm/v1/worker/block_table.py"
# Formats that git, and so the tool, has to know of to read the repository at all.
KEPT = ("core.repositoryformatversion", "extensions.objectformat", "extensions.refstorage")
# Of githooks(5), and the names under which programs answer for a remote.
HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist",
    "p4-pre-submit", "p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit",
    "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
    "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
    "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
ATTRIBUTES = (
    "* filter=x diff=x merge=x textconv=x export-subst ident\n"
    "*.py filter=x diff=x merge=x working-tree-encoding=UTF-8 eol=lf\n"
    "[attr]binary filter=x\n"
)


def every_key() -> Iterator[tuple[str, str, str]]:
    """Section, subsection and name of every configuration key, `x` for what a user names."""
    listed = subprocess.run(
        ["git", "help", "--config"], capture_output=True, text=True, check=True
    ).stdout.split()
    for key in listed:
        section, _, rest = key.partition(".")
        middle, _, name = rest.rpartition(".")
        name = "x" if "<" in name or "*" in name else name
        middle = "x" if "<" in middle or "*" in middle else middle
        if section.isalnum() and name and key.lower() not in KEPT:
            yield section, middle, name


def configured(root: Path, mark: Path) -> Path:
    """The repository with every key, hook and attribute set to a program that leaves a mark."""
    folder = root / ".git" if (root / ".git").is_dir() else root
    program = mark.parent / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    program.chmod(0o755)
    lines = ["[core]", "repositoryformatversion = 0", f"bare = {str(folder == root).lower()}"]
    for section, middle, name in every_key():
        lines.append(f'[{section} "{middle}"]' if middle else f"[{section}]")
        lines.append(f'{name} = "{program}"')
    for section in ("include", 'includeIf "gitdir:/"', 'includeIf "onbranch:**"'):
        lines += [f"[{section}]", f"path = {mark.parent / 'included'}"]
    (mark.parent / "included").write_text(f'[core]\npager = "{program}"\nfsmonitor = "{program}"\n')
    lines += ["[alias]", *(f'{verb} = "!{program}"' for verb in ("status", "cat-file", "ls-files"))]
    lines += ['[remote "origin"]', "promisor = true", "partialCloneFilter = blob:none",
              f'url = "ext::{program}"', "[extensions]", "partialClone = origin"]  # fmt: skip
    (folder / "config").write_text("\n".join(lines) + "\n")
    (folder / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        shutil.copy(program, folder / "hooks" / hook)
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text(ATTRIBUTES)
    return root


def run(
    *arguments: str | Path, folder: Path | None = None, path: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder or "/"), "PATH": path + os.environ["PATH"]}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "vllm-codemods"), *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def root(tmp_path: Path, mark: Path) -> Path:
    made = repository(tmp_path / "tree", fork("00-no-monitor").tree.files)
    return configured(made, mark)


def test_the_mark_shows_what_git_itself_runs(root: Path, mark: Path) -> None:
    program = mark.parent / "program"
    settings = f'[filter "x"]\nclean = {program}\n[core]\nfsmonitor = {program}\n'
    (root / ".git/config").write_text(f"[core]\nrepositoryformatversion = 0\n{settings}")
    os.utime(root / FILE, (1, 1))
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False)
    assert mark.exists()


def test_verbs_work_and_run_nothing(root: Path, mark: Path) -> None:
    os.utime(root / FILE, (1, 1))
    assert run("check", root).returncode == 1
    assert run("diff", root).returncode == 0
    assert run("diff", root, "--format", "git").returncode == 0
    assert run("check", root, "--ref", "HEAD").returncode == 1
    assert run("check", root, "--ref", "ma*").returncode == 1
    assert run("apply", root).returncode == 0
    assert run("check", root).returncode == 0
    assert not mark.exists()


def test_a_dirty_file_is_found_and_nothing_is_run(root: Path, mark: Path) -> None:
    (root / FILE).write_bytes((root / FILE).read_bytes() + b"# edited\n")
    ran = run("apply", root)
    assert ran.returncode == 3
    assert "--allow-dirty" in ran.stderr
    assert run("apply", root, "--allow-dirty").returncode == 0
    assert not mark.exists()


def test_a_bare_repository_runs_nothing(tmp_path: Path, mark: Path) -> None:
    made = repository(tmp_path / "tree", fork("00-no-monitor").tree.files)
    git(tmp_path, "clone", "-q", "--bare", str(made), "bare.git")
    bare = configured(tmp_path / "bare.git", mark)
    assert run("check", bare, "--ref", "main").returncode == 1
    assert run("diff", bare, "--ref", "main", "--format", "dep3").returncode == 0
    assert not mark.exists()


def test_a_missing_object_runs_no_remote(root: Path, mark: Path) -> None:
    shutil.rmtree(root / ".git")
    repository(root)
    blob = git(root, "rev-parse", f"HEAD:{FILE}")
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    configured(root, mark)
    ran = run("check", root, "--ref", "main")
    assert ran.returncode == 3
    assert "partial clone" in ran.stderr
    assert not mark.exists()


def test_a_terminal_pages_with_nothing_of_the_trees(root: Path, mark: Path) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "PAGER": "", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "codemods", "diff", str(root)],
        env=environment, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # Linux says so at the end
            break
        shown += part
        if not part:
            break
    assert process.wait(60) == 0
    os.close(master)
    assert b"diff" in shown or b"@@" in shown
    assert not mark.exists()


PROGRAMS = ("git", "less", "cat", "sh", "ruff", "mypy", "python", "python3", "env", "ssh")
MODULES = (
    "sitecustomize", "usercustomize", "libcst", "json", "subprocess", "ruff", "mypy", "pip", "git",
    "codemods/__init__", "codemods/__main__", "torch/__init__", "numpy/__init__", "conftest",
    "setup", "triton/__init__", "pypi_simple/__init__",
)  # fmt: skip


@pytest.mark.parametrize("verb", ["check", "diff", "apply", "verify"])
def test_programs_and_modules_that_lie_in_the_tree_are_not_run(
    verb: str, tmp_path: Path, mark: Path
) -> None:
    root = repository(tmp_path / "tree", fork("00-no-monitor").tree.files)
    for name in MODULES:
        (root / f"{name}.py").parent.mkdir(exist_ok=True)
        (root / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    for name in PROGRAMS:
        if not (root / name).exists():
            (root / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
            (root / name).chmod(0o755)
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
        '[tool.mypy]\nplugins = ["setup.py"]\n[tool.ruff]\nline-length = 100\n'
    )
    commit(root, {})
    configured(root, mark)
    options = ["--mypy", "--target", "cuda:90"] if verb == "verify" else []
    ran = run(verb, ".", *options, folder=root, path=".:")
    # verify with all its proofs is run here alone, in a repository that is as odd as any above.
    # mypy takes the tree's torch.py for torch, as it must: verify may find an error.
    assert ran.returncode in {"check": (1,), "verify": (0, 1)}.get(verb, (0,)), ran.stderr
    assert not mark.exists()


@pytest.mark.parametrize("verb", ["check", "diff", "apply"])
def test_the_trees_own_modules_are_read_and_never_run(
    verb: str, tmp_path: Path, mark: Path
) -> None:
    files = {
        name: f"open({str(mark)!r}, 'w')\n".encode() + data if b"__future__" not in data else data
        for name, data in fork("00-no-monitor").tree.files.items()
    }
    root = repository(tmp_path / "tree", files)
    assert run(verb, root).returncode in (0, 1)
    assert not mark.exists()
