"""Real releases to work on: the list, their trees, checkouts of them, and the command."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import new_releases  # noqa: E402
import release_table  # noqa: E402
from pinned import Pinned, load  # noqa: E402

from codemods.release import UnreachableError, fetch  # noqa: E402
from codemods.release.names import Source  # noqa: E402
from tests.forks.profiles import FRESH  # noqa: E402

__all__ = ["Pinned", "new_releases", "release_table"]

PINNED = load()


def one_for_each_row(pinned: Iterable[Pinned]) -> list[Pinned]:
    """One release for each row of the README's table, from each kind of archive; in a search all.

    It is the first with these expectations, so that a change of vLLM is seen where it comes.
    """
    found: dict[object, Pinned] = {}
    for one in pinned:
        found.setdefault(one if FRESH else (one.source, one.expected, one.also), one)
    return list(found.values())


TRIED = one_for_each_row(PINNED)
# The release whose sdist lends its ruff settings to the wheels, which have none.
SETTINGS = "0.21.0"


def name_of(pinned: Pinned) -> str:
    return f"{pinned.version}-{pinned.source.value}"


def tree_of(version: str, source: Source) -> Path:
    """The release's sources out of the cache or the index; skips only without any network."""
    try:
        return fetch(version, sdist=source is Source.SDIST)
    except UnreachableError as error:
        pytest.skip(str(error))


def files_under(folder: Path) -> dict[str, bytes]:
    """Every file's bytes by its POSIX name, git's own left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


@dataclass(frozen=True)
class Ran:
    """One run of the command."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        data = json.loads(self.stdout)
        assert isinstance(data, dict)
        return data


def run(*argv: str | Path) -> Ran:
    """`vllm-codemods ARGV` in this process."""
    from codemods.cli.main import main

    stdout, stderr = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        code = main([str(argument) for argument in argv])
    stdout.flush()
    assert isinstance(stdout.buffer, io.BytesIO)
    return Ran(code, stdout.buffer.getvalue(), stderr.getvalue())


def git(folder: Path, *arguments: str | Path) -> bytes:
    """git's stdout, in a world where the user has no settings of their own."""
    clean = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments],
        cwd=folder,
        env=clean,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()
    return ran.stdout


def checkout(tree: Path, folder: Path) -> Path:
    """A git checkout of the tree with ruff settings in it, everything committed."""
    shutil.copytree(tree, folder)
    settings = tree_of(SETTINGS, Source.SDIST) / "pyproject.toml"
    if not (folder / "pyproject.toml").exists():
        shutil.copy(settings, folder)
    git(folder, "init", "-q")
    git(folder, "config", "core.autocrlf", "false")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "release")
    return folder


@dataclass(frozen=True)
class Rewritten:
    """A release before and after, and what the command said on the way."""

    pinned: Pinned
    original: Path
    tree: Path  # after apply
    patched: Path  # after git apply of the diff
    first_check: Ran
    diff: Ran
    apply: Ran
    last_check: Ran

    @property
    def before(self) -> dict[str, bytes]:
        return files_under(self.original)

    @property
    def after(self) -> dict[str, bytes]:
        return files_under(self.tree)

    @property
    def changed(self) -> list[str]:
        before, after = self.before, self.after
        return sorted(name for name in after if after[name] != before.get(name))
