"""The two hooks, run by pre-commit in a git repository that holds a vLLM-shaped tree."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest
from consumers import FIXTURE, REPOSITORY, Ran, commit_all, need, run, run_well, with_command

CHECK, FIX = "vllm-slot-mapping-check", "vllm-slot-mapping-fix"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    need("git")
    if importlib.util.find_spec("pre_commit") is None:
        pytest.skip("pre-commit is not installed")
    tree = tmp_path / "fork"
    shutil.copytree(FIXTURE, tree)
    # The hooks as they are, but run from this checkout instead of an environment that pip builds.
    hooks = (REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    local = hooks.replace("language: python", "language: system")
    indented = re.sub(r"^", "      ", local, flags=re.MULTILINE)
    text = f"repos:\n  - repo: local\n    hooks:\n{indented}"
    (tree / ".pre-commit-config.yaml").write_text(text.rstrip() + "\n", encoding="utf-8")
    commit_all(tree)
    return tree


def hook(repository: Path, name: str, *options: str) -> Ran:
    cache = str(repository.parent / "pre-commit")
    command = [sys.executable, "-m", "pre_commit", "run", name, *(options or ("--all-files",))]
    variables = with_command(repository.parent, PRE_COMMIT_HOME=cache)
    return run(command, repository, **variables)


def test_the_checking_hook_fails_on_a_tree_that_lacks_the_fix(repository: Path) -> None:
    ran = hook(repository, CHECK)
    assert ran.status == 1
    assert "fixable" in ran.output
    assert run_well("git status --porcelain", repository) == ""


def test_the_fixing_hook_fixes_fails_once_and_then_passes(repository: Path) -> None:
    first = hook(repository, FIX)
    assert first.status == 1
    assert "files were modified by this hook" in first.output
    assert "block_table.py" in run_well("git status --porcelain", repository)
    run_well("git add -u", repository)
    assert hook(repository, FIX).status == 0
    assert hook(repository, CHECK).status == 0


def test_the_fixing_hook_works_on_staged_changes(repository: Path) -> None:
    kernel = repository / "vllm/v1/worker/block_table.py"
    kernel.write_bytes(kernel.read_bytes() + b"\n# staged\n")
    run_well("git add -u", repository)
    assert (
        "files were modified by this hook"
        in hook(repository, FIX, "--hook-stage=pre-commit").output
    )
    assert kernel.read_bytes().endswith(b"# staged\n")


@pytest.mark.parametrize("name", [CHECK, FIX])
def test_a_change_elsewhere_does_not_start_a_hook(repository: Path, name: str) -> None:
    (repository / "vllm/config.py").write_text("x = 1\n")
    run_well("git add -u", repository)
    ran = hook(repository, name, "--hook-stage=pre-commit")
    assert ran.status == 0
    assert "Skipped" in ran.output


@pytest.mark.network
def test_pre_commit_installs_the_hooks_from_the_repository(
    repository: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(REPOSITORY), CHECK]
    # pre-commit asks git for the repository's head; the user's own settings may be needed for that.
    trust = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    ran = run(
        [*command, "--all-files"], repository, PRE_COMMIT_HOME=str(tmp_path / "cache"), **trust
    )
    assert ran.status == 1, ran.output
    assert "fixable" in ran.output
