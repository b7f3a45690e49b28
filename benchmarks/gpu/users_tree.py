"""A user's tree made ready to serve: copies of it for each side, and everything started on them.

What `pytest -m gpu --vllm-tree TREE` asserts on. TREE itself is only read.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import models
import suites
import trees
from cases import BEFORE, CASES, SIDES, Case
from runs import Job, Machine, Result, run_one
from server import Served

NEEDED = ("torch", "triton", "transformers", "libcst")
# Hybrid servers beside 15 others need more than 250 s.
START_LIMIT_S = 400.0
BESIDE_LIMIT_S = 400.0
# What one tiny server takes, at most.
SERVER_GIB = 4
IMPORTS = "import importlib, sys; importlib.import_module(sys.argv[1] + '.v1.worker.gpu_worker')"


class Missing(Exception):
    """Something that the tests need is not there; the text says what."""


@dataclass(frozen=True)
class Copies:
    """The tree's sides; `verdicts` maps each recipe to what `check` says of the tree."""

    label: str
    sides: dict[str, Served]
    verdicts: dict[str, str]
    why: str

    @property
    def last(self) -> Served:
        return list(self.sides.values())[-1]


def require_machine(gpus: int) -> None:
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            raise Missing(f"{name} is not installed")
    import torch

    if not torch.cuda.is_available():
        raise Missing("torch sees no GPU on this machine")
    if torch.cuda.device_count() < gpus:
        raise Missing(f"this machine has {torch.cuda.device_count()} of {gpus} GPUs")


def make_copies(tree: Path, into: Path) -> Copies:
    """Copy the tree once for each side that its verdicts call for, and rewrite the copies."""
    report = trees.verdicts(tree)
    package = tree / report["tree"]["package"]
    verdicts = {r["recipe"]: r["verdict"] for r in report.get("recipes", [])}
    verdicts = verdicts or {"slot-mapping": report["verdict"]}
    why = "; ".join(r.get("why") or "" for r in report.get("recipes", []))
    if report["verdict"] == "refused":
        raise Missing(f"the tool refuses this tree: {why or 'see check'}")
    version = report["tree"]["version"] or "0.0.0"
    wanted = [s for s in SIDES if s == BEFORE or report["verdict"] == "fixable"]
    made = {}
    for side in wanted:
        folder = into / side
        lay_out(tree, package, version, folder)
        trees.rewrite(folder, side)
        name = package.name
        made[side] = Served(version, side, folder, name, None, trees.digest(folder / name))
    require_import(made[BEFORE])
    return Copies(version, made, verdicts, why)


def lay_out(tree: Path, package: Path, version: str, folder: Path) -> None:
    """The package, its metadata, what was built, and vLLM's tests where the tree has them."""
    trees.copy(package, folder / package.name)
    for info in package.parent.glob(f"{package.name}-*.dist-info"):
        shutil.copytree(info, folder / info.name)
    trees.write_metadata(folder, package.name, version)
    if (tree / suites.MODULES[0]).exists():
        trees.copy(tree / "tests", folder / "tests")
        if (tree / "pyproject.toml").exists():
            shutil.copy2(tree / "pyproject.toml", folder / "pyproject.toml")
    if not trees.has_shared_objects(folder / package.name):
        found = importlib.util.find_spec("vllm")
        if found is None or found.origin is None:
            raise Missing(
                "the tree has no shared objects: build it, or install the vllm that it is "
                "built on (pip install 'vllm-codemods[gpu]')"
            )
        trees.link_what_was_built(folder / package.name, Path(found.origin).parent)


def require_import(tree: Served) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree.folder), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, tree.package],
        capture_output=True, text=True, timeout=300, env=env, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise Missing(f"the tree does not import here as it is: {last[-300:]}")


def room(gpus: int) -> int:
    """How many servers this machine holds at a time."""
    import torch

    free = min(torch.cuda.mem_get_info(n)[0] for n in range(gpus)) >> 30
    return max(2, min(16, os.cpu_count() or 2, free // SERVER_GIB))


class Session:
    """Everything that the tests ask about, started at once and running in the background."""

    def __init__(
        self,
        tree: Path,
        work: Path,
        gpus: int,
        chosen: str = "",
        record: Callable[[Result], None] = lambda result: None,
    ) -> None:
        require_machine(gpus)
        self.copies = make_copies(tree.resolve(), work / "trees")
        models.save_all(work / "models")
        self.cases = [c for c in CASES if is_chosen(c, gpus, chosen)]
        self.machine = Machine(work / "work", work / "models", gpus)
        self.pool = ThreadPoolExecutor(room(gpus))
        self.futures: dict[str, Future[Result]] = {}
        self.lines: list[str] = []
        self.record = record
        # The longest first: vLLM's own tests, then the live batch, then the servers.
        first_and_last = list({t.side: t for t in (self.before, self.copies.last)}.values())
        for served in first_and_last if gpus == 1 else ():
            self.submit(f"tests/{served.side}", partial(self.own_tests, served))
        for served in first_and_last if gpus == 1 else ():
            self.submit(f"live/{served.side}", partial(self.live_batch, served))
        for case in self.cases:
            for side in case.sides(tuple(self.copies.sides)):
                job = Job(self.copies.sides[side], case)
                number = len(self.futures)
                self.submit(
                    f"{case.name}/{side}",
                    partial(run_one, job, self.machine, number, START_LIMIT_S),
                )

    @property
    def before(self) -> Served:
        return self.copies.sides[BEFORE]

    def submit(self, name: str, action: Any) -> None:
        def recorded() -> Result:
            result: Result = action()
            self.record(result)
            return result

        self.futures[name] = self.pool.submit(recorded)

    def own_tests(self, tree: Served) -> Result:
        return suites.own_tests(tree, self.machine.work, self.machine.models, BESIDE_LIMIT_S)

    def live_batch(self, tree: Served) -> Result:
        return suites.live_batch(
            tree, "dense", self.machine.work, self.machine.models, BESIDE_LIMIT_S
        )

    def result(self, name: str) -> Result:
        return self.futures[name].result()

    def served(self, case: Case) -> dict[str, Result]:
        """The case's result for each side, in the order before, one recipe, all recipes."""
        return {
            side: self.result(f"{case.name}/{side}")
            for side in case.sides(tuple(self.copies.sides))
        }

    def close(self) -> None:
        """End what still runs, where the tests were stopped before they had asked for all."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.machine.stop_all()
        self.pool.shutdown()


def is_chosen(case: Case, gpus: int, chosen: str) -> bool:
    """Cases of this many GPUs: the ones marked for this, or those named in a comma-separated list.

    `all` chooses every one.
    """
    if case.gpus != gpus:
        return False
    if chosen == "all":
        return True
    return case.name in chosen.split(",") if chosen else case.in_gpu_test
