"""The few things that are asked of git, in a world where the user has no settings of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CLEAN = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_WHO = ("-c", "user.name=peers", "-c", "user.email=peers@example.invalid", "-c", "gc.auto=0")


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> bytes:
    ran = subprocess.run(
        ["git", *_WHO, *arguments], cwd=folder, env=CLEAN, input=stdin, capture_output=True
    )
    if ran.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {ran.stderr.decode(errors='replace')}")
    return ran.stdout


def committed(folder: Path) -> Path:
    """Make the folder a repository of one commit, with no change of line ends."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "core.autocrlf", "false")
    commit_all(folder, "as it is")
    return folder


def commit_all(folder: Path, message: str) -> str:
    """Commit the folder as it is; the commit's name."""
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD").decode().strip()
