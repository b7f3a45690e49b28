"""Git repositories that a test makes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git prints, under no one's own settings."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *_IDENTITY, "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env={**environment, **_ALONE},
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def repository(root: Path, files: Mapping[str, bytes] | None = None) -> Path:
    """A repository of what stands in a folder, or of these files, in one commit on `main`."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    commit(root, files or {})
    return root


def commit(root: Path, files: Mapping[str, bytes]) -> str:
    """A commit of these files and whatever else changed; its id."""
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "a commit")
    return git(root, "rev-parse", "HEAD")
