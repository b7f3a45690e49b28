"""What git's configuration says of the user, read without running anything that it names."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from codemods.engine.files import read_file
from codemods.engine.git import TIMEOUT
from codemods.engine.programs import find_program, safe_path
from codemods.engine.repository import BrokenRepository, Repository

_USERS = (
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
_MAX_CONFIG = 1 << 20  # bytes


def setting(root: Path, key: str, environ: Mapping[str, str]) -> str | None:
    """A setting such as `user.name`: the repository's own around `root`, else the user's.

    The repository's configuration is read as one file, without the files that it includes. None
    without git and where the setting is nowhere.
    """
    program = find_program("git")
    if program is None:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as scratch:
            folder = Path(scratch)
            for name in ("objects", "refs"):
                (folder / name).mkdir()
            (folder / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
            (folder / "theirs").write_bytes(_configuration(root))
            return _ask(
                program, folder, environ, "--file", "theirs", "--no-includes", "--get", key
            ) or _ask(program, folder, environ, "--get", key)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _configuration(root: Path) -> bytes:
    try:
        repository = Repository.around(root)
        return read_file(repository.common / "config", _MAX_CONFIG) if repository else b""
    except (BrokenRepository, OSError):
        return b""


def _ask(program: str, folder: Path, environ: Mapping[str, str], *arguments: str) -> str | None:
    users = {name: environ[name] for name in _USERS if name in environ}
    asked = subprocess.run(
        [program, "config", *arguments],
        cwd=folder,
        env={**users, "PATH": safe_path(), "GIT_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return asked.stdout.decode("utf-8", "replace").strip() or None
