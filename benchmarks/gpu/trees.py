"""Trees to serve: copies of a user's or a release's tree, rewritten by this project's own command.

A copy holds the tree's Python files; what is large (shared objects, data) links to the original,
which is never written to. What a checkout has not built is linked from the installed vLLM.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from cases import BEFORE, BOTH, ONE, SLOT_MAPPING

ROOT = Path(__file__).parents[2]
COPIED = (".py", ".toml", ".txt", ".json", ".jinja")
BUILT = (".so", ".pyd")
NOT_OF_A_TREE = {"__pycache__", ".git", ".venv", "node_modules"}


class Failed(Exception):
    """The tool's command ended otherwise than it was wanted to; the text says what it printed."""


def tool(*arguments: str, site: Path | None = None, expect: tuple[int, ...] = (0,)) -> str:
    """Run this checkout's vllm-codemods from a folder that holds no modules; its stdout.

    `site` holds the packages that the tool needs where this Python has none of its own.
    """
    paths = [str(ROOT), *([str(site)] if site else []), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-m", "codemods", *arguments],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=Path(__file__).with_name("compile_hook"), timeout=600,
    )  # fmt: skip
    if done.returncode not in expect:
        raise Failed(
            f"vllm-codemods {' '.join(arguments)}: {done.returncode}: {done.stderr[-800:]}"
        )
    return done.stdout


def recipe_options(side: str) -> list[str]:
    return ["--recipe", SLOT_MAPPING if side == ONE else "all"]


def verdicts(tree: Path) -> dict[str, Any]:
    """What `check --recipe all --json` says of the tree."""
    return json.loads(tool("check", str(tree), "--json", *recipe_options(BOTH), expect=(0, 1, 3)))


def copy(source: Path, target: Path, leave_out: tuple[str, ...] = ()) -> None:
    """A copy of `source` whose large files are links to the original's."""
    shutil.rmtree(target, ignore_errors=True)
    unwanted = {*NOT_OF_A_TREE, *leave_out}
    for folder, inner, files in os.walk(source):
        inner[:] = [name for name in inner if name not in unwanted]
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            path = Path(folder) / name
            if path.suffix in COPIED and path.is_file():
                shutil.copy2(path, here / name)
            elif path.exists():
                (here / name).symlink_to(path.resolve())


def rewrite(tree: Path, side: str, site: Path | None = None) -> None:
    """Apply the side's recipes in place; nothing to do is fine, a refusal is not."""
    if side != BEFORE:
        tool("apply", str(tree), "--allow-dirty", *recipe_options(side), site=site)


def link_what_was_built(package: Path, installed: Path) -> list[str]:
    """Link an installed package's shared objects and files that a checkout's package lacks."""
    linked = []
    for path in installed.rglob("*"):
        here = package / path.relative_to(installed)
        if path.is_dir() or "__pycache__" in path.parts or here.exists():
            continue
        # Only what a build makes: a module that a fork took out must stay out.
        generated = path.suffix in BUILT or path.name == "_version.py"
        if generated or "vllm_flash_attn" in path.parts or "third_party" in path.parts:
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(path.resolve())
            linked.append(str(path.relative_to(installed)))
    return linked


def has_shared_objects(package: Path) -> bool:
    return any(path.suffix in BUILT for path in package.iterdir())


def write_metadata(folder: Path, package: str, version: str) -> None:
    """A distribution's metadata, so that a copy beside no dist-info knows its version."""
    if not any(folder.glob(f"{package}-*.dist-info")):
        info = folder / f"{package}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )


def digest(package: Path) -> str:
    """SHA-256 over the Python files' paths and bytes."""
    total = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        total.update(f"{path.relative_to(package).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
