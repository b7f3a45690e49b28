"""Make what drive.py serves, of what unpack.py laid out: models, forks, rewritten trees.

    python benchmarks/gpu/prepare.py ROOT

ROOT/trees/LABEL becomes ROOT/sides/LABEL/SIDE for each rewrite; `served.json` in each says the
package and the hash of its Python files. Everything is attempted; when a model, a fork or a side
could not be made, or a tree does not import, the last lines name it and the exit status is 1, so
that nothing is served before that is known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import forks
import trees
from cases import BEFORE, SIDES

FAILED, SERVED = "FAILED", "served.json"
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


def make_side(root: Path, tree: Path, side: str) -> str:
    """One side of a tree, compiled to bytecode; a line on what was done."""
    target = tree if side == BEFORE else root / "sides" / tree.name / side
    if side != BEFORE:
        trees.copy(tree, target)
        # The copy of the tree's own, were it left, would say that this side is made.
        (target / SERVED).unlink(missing_ok=True)
        trees.rewrite(target, side, root / "site")
    package = package_of(target)
    about = {"package": package, "sha256": trees.digest(target / package)}
    (target / SERVED).write_text(json.dumps(about))
    compile_all(target / package)
    return f"{target.parent.name}/{target.name}: {about['sha256'][:12]}"


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
    said = lines[-1] if lines else str(done.returncode)
    if done.returncode != 0:
        raise trees.Failed(f"does not import: {said}")
    return f"{tree.relative_to(root)} imports: {said}"


def models(root: Path) -> str:
    here = Path(__file__).with_name("models.py")
    env = os.environ | {"PYTHONPATH": str(root / "site")}
    done = subprocess.run([sys.executable, str(here), str(root / "models")], check=False,
                          capture_output=True, text=True, env=env)  # fmt: skip
    failed = [line for line in done.stderr.splitlines() if line.startswith("model ")]
    if failed or done.returncode != 0:
        raise trees.Failed(f"{failed or done.stderr[-800:]}")
    return "models: all made"


def attempt(name: str, action: Callable[..., str], *arguments: object) -> str:
    try:
        return action(*arguments)
    except Exception as error:  # one tree's fault must not keep the others
        return f"{FAILED} {name}: {error}"


def fork(root: Path, name: str) -> str:
    forks.make(root / "trees" / forks.BASE, name, root / "trees" / name)
    return f"trees/{name} made"


def make_all(root: Path) -> list[str]:
    """Make everything; a line on each thing, printed as it is there."""
    lines: list[str] = []

    def finish(pending: list[Future[str]]) -> None:
        made = [one.result() for one in pending]
        print("\n".join(made), flush=True)
        lines.extend(made)

    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pending = [pool.submit(attempt, "models", models, root)]
        if (root / "trees" / forks.BASE).exists():
            finish([pool.submit(attempt, name, fork, root, name) for name in forks.FORKS])
        found = sorted(path for path in (root / "trees").iterdir() if path.is_dir())
        for tree in found:
            for side in SIDES:
                name = f"{tree.name}/{side}"
                pending.append(pool.submit(attempt, name, make_side, root, tree, side))
        finish(pending)
        everything = [*found, *sorted((root / "sides").glob("*/*"))]
        finish([
            pool.submit(attempt, str(tree.relative_to(root)), imports, root, tree)
            for tree in everything
        ])  # fmt: skip
    return lines


def main() -> int:
    root, begun = Path(sys.argv[1]).resolve(), time.monotonic()
    failed = [line for line in make_all(root) if line.startswith(FAILED)]
    print(f"-- prepared in {time.monotonic() - begun:.0f} s", flush=True)
    if failed:
        print(f"STOP: {len(failed)} could not be made; serve nothing before they are, or remove "
              "their trees/LABEL:", *failed, sep="\n", flush=True)  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
