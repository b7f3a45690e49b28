"""The hooks, run by pre-commit in a git repository that holds a vLLM-shaped tree."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from consumers import (
    REPOSITORY,
    Case,
    Ran,
    commit_all,
    example,
    need,
    pages,
    run,
    run_well,
)
from traps import Traps

CHECK, FIX = "vllm-slot-mapping-check", "vllm-slot-mapping-fix"
# pre-commit asks git for the clone's head; the user's own settings may be needed for that.
TRUST = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


@pytest.fixture
def fork(small: Case, tmp_path: Path) -> Path:
    need("git")
    if importlib.util.find_spec("pre_commit") is None:
        pytest.skip("pre-commit is not installed")
    return small.copy(tmp_path / "fork")


@pytest.fixture
def repository(fork: Path) -> Path:
    # The hooks as they are, but run from this checkout instead of an environment that pip builds.
    hooks = (REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    local = hooks.replace("language: python", "language: system")
    indented = re.sub(r"^", "      ", local, flags=re.MULTILINE)
    return configured(fork, f"repos:\n  - repo: local\n    hooks:\n{indented}")


def configured(fork: Path, text: str) -> Path:
    (fork / ".pre-commit-config.yaml").write_text(text.rstrip() + "\n", encoding="utf-8")
    commit_all(fork)
    return fork


def hook(repository: Path, name: str, *options: str) -> Ran:
    return pre_commit(f"pre-commit run {name} {' '.join(options) or '--all-files'}", repository)


def pre_commit(command: str, repository: Path) -> Ran:
    """Run a command line that begins with pre-commit, which is that of the tests' Python."""
    line = command.replace("pre-commit", f'"{sys.executable}" -I -m pre_commit', 1)
    return run(line, repository, PRE_COMMIT_HOME=str(repository.parent / "cache"), **TRUST)


def test_the_fixing_hook_fixes_fails_once_and_then_passes(small: Case, repository: Path) -> None:
    first = hook(repository, FIX)
    assert first.status == 1
    assert "files were modified by this hook" in first.output
    small.assert_fixed(repository)
    run_well("git add -u", repository)
    assert hook(repository, FIX).status == 0
    assert hook(repository, CHECK).status == 0


def test_the_fixing_hook_works_on_staged_changes(repository: Path) -> None:
    kernel = repository / "vllm/v1/worker/block_table.py"
    kernel.write_bytes(kernel.read_bytes() + b"\n# staged\n")
    run_well("git add -u", repository)
    ran = hook(repository, FIX, "--hook-stage=pre-commit")
    assert "files were modified by this hook" in ran.output
    assert kernel.read_bytes().endswith(b"# staged\n")


@pytest.mark.parametrize("name", [CHECK, FIX])
def test_a_change_elsewhere_does_not_start_a_hook(repository: Path, name: str) -> None:
    (repository / "vllm/config.py").write_text("x = 1\n")
    run_well("git add -u", repository)
    ran = hook(repository, name, "--hook-stage=pre-commit")
    assert ran.status == 0
    assert "Skipped" in ran.output


def test_no_hook_imports_a_module_of_the_repository(
    small: Case, repository: Path, tmp_path: Path
) -> None:
    traps = Traps(repository, tmp_path / "marker")
    traps.set()
    traps.assert_they_work()
    # Not for pre-commit's own Python, which is the user's to start.
    entries = re.findall(
        r"^ *entry: (.*)$", (repository / ".pre-commit-config.yaml").read_text(), re.M
    )
    assert len(entries) == 2
    for entry, status in zip(entries, (1, 0), strict=True):
        ran = run(f"{entry} .", repository, PYTHONPATH=f".:{repository}")
        assert ran.status == status, ran.output
        traps.assert_untouched()
    small.assert_fixed(repository)


def test_the_pages_own_configuration_checks(small: Case, fork: Path) -> None:
    repository = configured(fork, example("pre-commit"))
    ran = hook(repository, CHECK)
    assert ran.status == 1
    assert "fixable" in ran.output
    assert run_well("git status --porcelain", repository) == ""
    for name, after in small.changes.items():
        (repository / name).write_bytes(after)
    run_well("git add -u", repository)
    assert hook(repository, CHECK).status == 0


@pytest.mark.network
def test_pre_commit_installs_the_hooks_from_a_clone(
    fork: Path, index: None, tmp_path: Path
) -> None:
    commit_all(fork)
    traps = Traps(fork, tmp_path / "marker")
    traps.set()
    (tmp_path / "vllm-codemods").symlink_to(REPOSITORY)
    ran = pre_commit(example("try-repo"), fork)
    assert ran.status == 1, ran.output
    assert "fixable" in ran.output
    traps.assert_untouched()


def test_the_hooks_that_the_pages_name_are_there() -> None:
    hooks = (REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"id: (.*)", hooks)) == set(re.findall(r"vllm-slot-mapping-\w+", pages()))
