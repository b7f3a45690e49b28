"""All that the benchmark takes from this project: the command, the releases, the forks' trees.

The tool is run as a command, as anyone would run it. What is imported is imported here alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

_BIN = Path(sys.executable).parent
COMMAND = [str(_BIN / "vllm-codemods")]
RUFF = _BIN / "ruff"
_WHERE = "import codemods; print(codemods.__file__)"
ENGINE = ROOT / "tests" / "forks" / "engine.py"
# No wheel carries ruff settings: every release is judged by those of this one's source archive.
SETTINGS_RELEASE = "0.21.0"
# The forks' trees are formatted with this width.
FORK_SETTINGS = b"line-length = 100\n"
NOTHING_NEEDED = frozenset({"already-fixed", "not-affected", "superseded"})


def version() -> str:
    """The version of the sources here, which the command must run.

    What an installed distribution says of itself can be of another copy. Raises RuntimeError where
    the command would run other sources.
    """
    found = Path(_output([sys.executable, "-I", "-c", _WHERE]).strip()).resolve()
    if not found.is_relative_to(ROOT):
        raise RuntimeError(f"{COMMAND[0]} does not run the sources of {ROOT}")
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(data["project"]["version"])


def commit() -> str:
    """The commit of the sources here, marked where they were changed since."""
    return _output(["git", "describe", "--always", "--abbrev=10", "--dirty", "--exclude=*"]).strip()


def has_ref() -> bool:
    """Whether `check` reads a commit by itself."""
    return "--ref" in _output([*COMMAND, "check", "--help"])


def patch_for(tree: Path) -> bytes:
    """The patch that the tool makes for a tree; the tree stays as it is."""
    ran = subprocess.run(
        [*COMMAND, "diff", str(tree), "--format", "git"], cwd=ROOT, capture_output=True, check=True
    )
    return ran.stdout


def releases() -> Iterator[tuple[str, str]]:
    """Each release whose wheel is pinned, and what is expected of the tool there: a verdict."""
    data = tomllib.loads((ROOT / "fixtures" / "releases.toml").read_text("utf-8"))
    for release in data["release"]:
        if release["source"] == "wheel":
            yield release["version"], data["expect"][release["expect"]]["verdict"]


def release_tree(version: str, *, sdist: bool = False) -> Path:
    """A release's own files, from the cache or the index."""
    from codemods.release import fetch

    return fetch(version, sdist=sdist)


def whole_release() -> Path:
    """One release's source archive, unpacked whole: some 5,000 files."""
    sys.path[:0] = [str(ROOT / "benchmarks")]
    import check_cost

    return check_cost.whole_release()


def fork_names() -> list[str]:
    from tests.forks import trees

    return trees.names()


def write_fork(name: str, folder: Path) -> str:
    """Lay a fork's tree out in a folder; the path of its package, relative to that folder."""
    from tests.forks import trees

    tree = trees.fork(name).tree
    tree.write_to(folder)
    return tree.package


def fork_expected(name: str) -> str:
    """The verdict that a person wrote down for the fork."""
    from tests.forks import trees

    return str(trees.fork(name).expected["verdict"])


def _output(command: list[str]) -> str:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {ran.stderr.strip()[-400:]}")
    return ran.stdout
