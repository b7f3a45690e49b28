"""What git knows of the files that an apply would rewrite."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

_KEPT = ("GIT_CONFIG_", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_", "GIT_EXEC_PATH")
_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0",  # a look must not rewrite the index
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_CONFIGURATION = (
    *("-c", "core.fsmonitor=false"),  # a tree's own configuration may name a program here
    *("-c", "status.renames=false"),
)
_STATUS = ("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all")
_TIMEOUT = 60  # seconds


class GitUnsure(Exception):
    """Git stands over the files but does not say what it knows: one clear line."""


def dirty_files(root: Path, paths: Iterable[str]) -> list[str]:
    """Those of `paths` (POSIX, relative to `root`) that have uncommitted changes, in their order.

    Each file is asked of the innermost repository around it, so submodules, worktrees and
    repositories deeper down answer for themselves, and a symbolic link for the file it points to.
    A new file beside tracked ones counts; one in a folder of which git tracks nothing (a virtual
    environment inside a repository) or that git ignores does not. Empty outside a repository and
    without git. Raises GitUnsure when git refuses to answer (another user's repository, a broken
    worktree): then nobody knows, and to write is the user's decision.
    """
    return [path for path in paths if _is_dirty(Path(os.path.realpath(root / path)))]


def _is_dirty(file: Path) -> bool:
    if not any(os.path.lexists(folder / ".git") for folder in file.parents):
        return False
    status = _ask(file, *_STATUS, "--", file.name)
    if status.startswith(b"?? "):
        return bool(_ask(file, "ls-files", "-z", "--", "."))
    return bool(status)


def _ask(file: Path, *question: str) -> bytes:
    """Git's answer in the file's folder; empty where there is no repository or no git."""
    command = ("git", "-C", str(file.parent), *_CONFIGURATION, *question)
    try:
        ran = subprocess.run(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        return b""
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unsure(file, str(error)) from None
    if not ran.returncode:
        return ran.stdout
    said = ran.stderr.decode(errors="replace").splitlines()
    fatal = next((line for line in said if line.startswith("fatal:")), None)
    if fatal and fatal.startswith("fatal: not a git repository (or any"):
        return b""
    raise _unsure(file, fatal or f"git exited {ran.returncode}")


def _environment() -> dict[str, str]:
    """Ours, without what points git at another repository, such as a hook's GIT_DIR."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    }
    return {**kept, **_SETTINGS}


def _unsure(file: Path, said: str) -> GitUnsure:
    line = said if said.isprintable() else ascii(said)
    return GitUnsure(
        f"git does not say whether {file.name} has uncommitted changes ({line}); "
        "settle that with git, or pass --allow-dirty"
    )
