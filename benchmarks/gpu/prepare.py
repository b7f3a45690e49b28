"""Make what drive.py serves, of what unpack.py laid out: models, forks, rewritten trees.

    python benchmarks/gpu/prepare.py ROOT

ROOT/trees/LABEL becomes ROOT/sides/LABEL/SIDE for each side that this checkout's tool can make;
`served.json` in each says the package and the hash of its Python files. A tree that is refused or
does not import is said and left out of no one else's way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import forks
import trees
from cases import BEFORE

IMPORTS = """
import importlib, sys
package = importlib.import_module(sys.argv[1])
importlib.import_module(sys.argv[1] + ".v1.worker.gpu_worker")
importlib.import_module(sys.argv[1] + ".entrypoints.openai.api_server")
platform = importlib.import_module(sys.argv[1] + ".platforms").current_platform
print(package.__version__, type(platform).__name__)
"""


def package_of(tree: Path) -> str:
    return forks.RENAMED if (tree / forks.RENAMED).is_dir() else "vllm"


def make_side(tree: Path, side: str, target: Path) -> str:
    """One side of a tree, compiled to bytecode; a line on what was done."""
    if side != BEFORE:
        trees.copy(tree, target)
        trees.rewrite(target, side)
    package = package_of(target)
    told = {"package": package, "sha256": trees.digest(target / package)}
    (target / "served.json").write_text(json.dumps(told))
    compile_all(target / package)
    return f"{target.parent.name}/{target.name}: {told['sha256'][:12]}"


def compile_all(folder: Path) -> None:
    """Bytecode, so that the servers' starts do not all make it."""
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", str(folder)], check=False, capture_output=True
    )


def imports(root: Path, tree: Path) -> str:
    paths = [str(tree), str(root / "site"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, package_of(tree)],
        capture_output=True, text=True, timeout=180, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return f"{tree.relative_to(root)} imports: {lines[-1] if lines else done.returncode}"


def models(root: Path) -> str:
    here = Path(__file__).with_name("models.py")
    env = os.environ | {"PYTHONPATH": str(root / "site")}
    done = subprocess.run([sys.executable, str(here), str(root / "models")], check=False,
                          capture_output=True, text=True, env=env)  # fmt: skip
    failed = [line for line in done.stderr.splitlines() if line.startswith("model ")]
    return f"models: {done.returncode} {failed or 'all made'}"


def attempt(name: str, action: Callable[..., str], *arguments: object) -> str:
    try:
        return action(*arguments)
    except Exception as error:  # one tree's fault must not keep the others
        return f"{name} FAILED {error}"


def fork(root: Path, name: str) -> str:
    forks.make(root / "trees" / forks.BASE, name, root / "trees" / name)
    return f"trees/{name} made"


def main() -> int:
    root, begun = Path(sys.argv[1]).resolve(), time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pending = [pool.submit(attempt, "models", models, root)]
        if (root / "trees" / forks.BASE).exists():
            made = [pool.submit(attempt, name, fork, root, name) for name in forks.FORKS]
            print("\n".join(one.result() for one in made), flush=True)
        found = sorted(path for path in (root / "trees").iterdir() if path.is_dir())
        for tree in found:
            for side in trees.sides():
                target = tree if side == BEFORE else root / "sides" / tree.name / side
                name = f"{tree.name}/{side}"
                pending.append(pool.submit(attempt, name, make_side, tree, side, target))
        print("\n".join(one.result() for one in pending), flush=True)
        everything = [*found, *sorted((root / "sides").glob("*/*"))]
        smoke = [pool.submit(attempt, str(tree), imports, root, tree) for tree in everything]
        print("\n".join(one.result() for one in smoke), flush=True)
    print(f"-- prepared in {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
