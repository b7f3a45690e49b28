"""The evidence: real servers of each release, before and after the rewrite.

    python benchmarks/gpu/drive.py ROOT --out OUT --commit HASH [--for-s 540] [--stages dense,…]

ROOT is what prepare.py made; a tree without all its sides stops the driver before it serves.
Stages run in the order of STAGES, most telling first, and each starts nothing that the time left
does not allow. A result is written as soon as it is there, is
not measured again by a later run, and is printed as a line; the last lines are what failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import runs
import suites
from cases import BEFORE, BY_NAME, CASES, KV_BLOCK_ZEROING, SIDES, Case
from record import Record, about, read
from runs import Action, Job, Machine, Result, in_order, run_all, run_one, run_wave
from server import Served
from trees import Failed, recipe_options

RELEASES = ("0.20.2", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.26.0")
EVERY_CASE = ("0.26.0", "0.23.0")
ZEROING = ("0.21.0", "0.23.0", "0.24.0", "0.26.0")
DEFAULT_FIRST = ("0.23.0", "0.26.0", "0.21.0", "0.24.0")
LATER = ("0.27.1", "0.28.0")
LATER_CASES = ("dense", "pooling", "block-size-32")
FORK_CASES = ("dense", "hybrid", "pooling", "eager")
LIVE_MODELS = ("dense", "falcon-h1")
PROVED = ("0.21.0", "0.26.0")
PAIRS = 3


@dataclass(frozen=True)
class Pace:
    """How many servers start at once, how long they may take, what time one must have left."""

    at_once: int
    limit_s: float
    needs_s: float


# Measured on 16 processors: a dense server beside 21 others is up after 101 to 163 s, a hybrid one
# (which compiles Mamba's kernels at start from 0.22 on) beside 8 or 11 others after 199 to 226 s.
QUICK = Pace(at_once=22, limit_s=260.0, needs_s=200.0)
SLOW = Pace(at_once=12, limit_s=400.0, needs_s=330.0)
BESIDE = Pace(at_once=10, limit_s=400.0, needs_s=330.0)


def pace_of(case: Case) -> Pace:
    return SLOW if KV_BLOCK_ZEROING in case.recipes else QUICK


@dataclass(frozen=True)
class Root:
    """What prepare.py laid out: trees/LABEL, sides/LABEL/SIDE, site/, models/, work/."""

    path: Path

    def labels(self) -> list[str]:
        return sorted(path.name for path in (self.path / "trees").iterdir() if path.is_dir())

    def tree(self, label: str, side: str) -> Served | None:
        parts = ("trees", label) if side == BEFORE else ("sides", label, side)
        folder = self.path.joinpath(*parts)
        site = self.path / "site"
        if not (folder / "served.json").exists():
            return None
        about = json.loads((folder / "served.json").read_text())
        beside = site if site.exists() else None
        return Served(label, side, folder, about["package"], beside, about["sha256"])

    def missing(self) -> list[str]:
        """Sides that prepare.py could not make of a tree that is there."""
        return [
            f"{label}/{side}"
            for label in self.labels()
            for side in SIDES
            if self.tree(label, side) is None
        ]

    def group(self, label: str, case: Case, run: int = 1) -> list[Job]:
        """One comparison: the case's sides, in the order in which this run asks them."""
        trees = [self.tree(label, side) for side in case.sides(SIDES)]
        return in_order(Job(tree, case, run) for tree in trees if tree is not None)

    def groups(self, labels: Sequence[str], case: str, run: int = 1) -> list[list[Job]]:
        found = [self.group(label, BY_NAME[case], run) for label in labels]
        return [group for group in found if len(group) > 1]


def waves(groups: Sequence[list[Job]], at_once: int) -> list[list[Job]]:
    """The groups, whole, in as few and as equal waves of at most `at_once` servers as can be."""
    total = sum(len(group) for group in groups)
    size = -(-total // max(1, -(-total // at_once)))
    found: list[list[Job]] = []
    for group in groups:
        full = not found or len(found[-1]) >= size or len(found[-1]) + len(group) > at_once
        if full:
            found.append([])
        found[-1].extend(group)
    return found


def timed(root: Root, labels: Sequence[str], case: str) -> list[list[Job]]:
    return [g for run in range(1, PAIRS + 1) for g in root.groups(labels, case, run)]


def zeroing(root: Root) -> Iterator[Job]:
    """Two families of hybrid models in each release that has the second kernel, and V2's runner."""
    for case in ("hybrid", "hybrid-nemotron"):
        for label in ZEROING:
            yield from root.group(label, BY_NAME[case])
    for label in EVERY_CASE:
        yield from root.group(label, BY_NAME["hybrid-v2-runner"])


def every_case(root: Root) -> Iterator[Job]:
    """One comparison of each case whose times are not taken anyway."""
    for case in CASES:
        if case.gpus == 1 and case.name not in ("dense", "default-backend"):
            for label in EVERY_CASE:
                yield from root.group(label, case)


def forks(root: Root) -> Iterator[Job]:
    for label in root.labels():
        for case in FORK_CASES if label.startswith("fork-") else ():
            yield from root.group(label, BY_NAME[case])


def later(root: Root) -> Iterator[Job]:
    for label in LATER:
        for case in LATER_CASES:
            yield from root.group(label, BY_NAME[case])


def beside(root: Root, machine: Machine, limit: Callable[[], float]) -> dict[str, Action]:
    """vLLM's own tests and a live batch, before and after all the tool's rewrites."""
    found: dict[str, Action] = {}
    for label in (*EVERY_CASE, *(r for r in RELEASES if r not in EVERY_CASE)):
        trees = [tree for side in SIDES if (tree := root.tree(label, side)) is not None]
        for tree in trees[:1] + trees[1:][-1:]:
            found[f"{label}/tests/{tree.side}"] = lambda _, t=tree: suites.own_tests(
                t, machine.work, machine.models, limit()
            )
            for model in LIVE_MODELS if label in EVERY_CASE else ():
                found[f"{label}/live-{model}/{tree.side}"] = lambda _, t=tree, m=model: (
                    suites.live_batch(t, m, machine.work, machine.models, limit())
                )
    return found


class Drive:
    """One run of the driver: what is left of its time, what is done, what it records."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.begun = time.monotonic()
        self.args = args
        self.root = Root(args.root)
        self.machine = Machine(args.root / "work", args.root / "models", args.gpus)
        self.record = Record(
            args.root / "results.jsonl", args.out / "results.jsonl", about(args.commit)
        )
        self.done = self.record.done() | done_already(args.also)

    def left(self) -> float:
        return float(self.args.for_s) - (time.monotonic() - self.begun)

    def wanted(self, name: str) -> bool:
        return name not in self.done and re.search(self.args.only, name) is not None

    def add(self, result: Result) -> None:
        if result.get("error") == "no time left":
            print(f"{result['name']:44} no time left", flush=True)
            return
        self.record.add(result)
        print(line(result), flush=True)

    def waves(self, groups: list[list[Job]]) -> None:
        """Times: a group is measured whole or not at all."""
        timed_before = {
            r["name"] for r in read([self.record.kept]) if r.get("timed") and "error" not in r
        }
        groups = [
            g for g in groups
            if any(job.name not in timed_before and re.search(self.args.only, job.name)
                   for job in g)
        ]  # fmt: skip
        for pace in (QUICK, SLOW):
            mine = [g for g in groups if pace_of(g[0].case) == pace]
            for wave in waves(mine, min(pace.at_once, self.args.at_once)):
                self.wave(wave, pace)

    def wave(self, wave: list[Job], pace: Pace) -> None:
        if self.left() < pace.needs_s:
            print(f"no time left for {[job.name for job in wave]}", flush=True)
            return
        begun = time.monotonic()
        run_wave(wave, self.machine, min(pace.limit_s, self.left() - 60), self.add)
        print(f"-- wave of {len(wave)} in {time.monotonic() - begun:.0f} s", flush=True)

    def pool(self, jobs: Iterator[Job], pace: Pace) -> None:
        """Counts: as many at a time as the machine holds, and in time brings up."""
        self.all({job.name: partial(self.one, job, pace) for job in jobs}, pace)

    def one(self, job: Job, pace: Pace, number: int) -> Result:
        return run_one(job, self.machine, number, min(pace.limit_s, self.left() - 30))

    def all(self, actions: dict[str, Action], pace: Pace) -> None:
        wanted = {n: self.in_time(n, a, pace) for n, a in actions.items() if self.wanted(n)}
        begun = time.monotonic()
        if wanted:
            run_all(wanted, min(pace.at_once, self.args.at_once), self.add)
            print(f"-- {len(wanted)} counted in {time.monotonic() - begun:.0f} s", flush=True)

    def in_time(self, name: str, action: Action, pace: Pace) -> Action:
        def start(number: int) -> Result:
            if self.left() < pace.needs_s:
                return {"name": name, "error": "no time left"}
            return action(number)

        return start

    def verify(self) -> None:
        """The tool's own proofs on the GPU, one tree after another: one of them times launches."""
        for label in PROVED:
            tree = self.root.tree(label, BEFORE)
            if tree is None or not self.wanted(f"{label}/verify") or self.left() < 60:
                continue
            options = recipe_options("all")
            limit = min(200.0, self.left() - 20)
            self.add(suites.gpu_proofs(tree, self.machine.work, options, limit))

    def limit(self, pace: Pace) -> float:
        return min(pace.limit_s, self.left() - 15)

    def stage(self, name: str) -> None:
        root = self.root
        if name == "dense":
            self.waves(timed(root, RELEASES, "dense"))
        elif name == "hybrid":
            self.waves(timed(root, EVERY_CASE, "hybrid"))
        elif name == "default":
            self.waves(timed(root, DEFAULT_FIRST, "default-backend"))
        elif name == "default-rest":
            rest = [label for label in RELEASES if label not in DEFAULT_FIRST]
            self.waves(timed(root, rest, "default-backend"))
        elif name == "counts":
            jobs = chain(forks(root), every_case(root), later(root))
            self.pool((job for job in jobs if pace_of(job.case) == QUICK), QUICK)
        elif name == "hybrid-counts":
            jobs = chain(zeroing(root), forks(root))
            self.pool((job for job in jobs if pace_of(job.case) == SLOW), SLOW)
        elif name == "beside":
            limit = partial(self.limit, BESIDE)
            self.all(beside(root, self.machine, limit), BESIDE)
        elif name == "verify":
            self.verify()
        elif name == "several-gpus":
            cases = [case.name for case in CASES if case.gpus == self.args.gpus]
            self.waves([g for case in cases for g in timed(root, EVERY_CASE, case)])


STAGES = {
    1: (
        "dense", "hybrid-counts", "verify", "counts",
        "default", "beside", "hybrid", "default-rest",
    ),
    2: ("several-gpus",),
}  # fmt: skip


def done_already(results: Path | None) -> set[str]:
    """Names of the results in a JSON array that hold no error."""
    found = json.loads(results.read_text()) if results is not None else []
    return {result["name"] for result in found if "error" not in result}


def line(result: Result) -> str:
    if result.get("kind") in ("live", "tests", "verify"):
        return suites.row(result)
    if "requests" in result:
        return runs.row(result)
    return f"{result['name']:44} FAILED {result.get('error', '')!r}"


def failed_logs(args: argparse.Namespace, results: list[Result]) -> None:
    with (args.out / "failed-logs.txt").open("w") as out:
        for result in results:
            log = args.root / "work" / result["name"].replace("/", "-") / "log"
            if "error" in result and log.exists():
                out.write(f"===== {result['name']}\n{log.read_text(errors='replace')[-30000:]}\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="of this project; the machine has no .git")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--stages", help="a comma-separated choice, in this order")
    parser.add_argument("--only", default="", help="a regular expression over result names")
    parser.add_argument("--also", type=Path, help="a results.json whose counts are not taken again")
    parser.add_argument("--at-once", type=int, default=22, help="at most")
    parser.add_argument("--for-s", type=float, default=540.0, help="start nothing past this")
    args = parser.parse_args()
    args.root, args.out = args.root.resolve(), args.out.resolve()
    if missing := Root(args.root).missing():
        print(f"not made: {', '.join(missing)}; run prepare.py, or remove their trees/LABEL")
        return 2
    drive = Drive(args)
    print(drive.record.about, flush=True)
    stages = args.stages.split(",") if args.stages else STAGES[min(args.gpus, 2)]
    for name in stages:
        begun = time.monotonic()
        try:
            drive.stage(name)
        except (Failed, OSError) as error:
            print(f"stage {name} FAILED {error!r}", flush=True)
        print(f"== {name}: {time.monotonic() - begun:.0f} s; {drive.left():.0f} s left", flush=True)
    results = read([drive.record.kept])
    failed_logs(args, results)
    failed = [line(result) for result in results if "error" in result]
    print("\n".join([f"{len(results)} results, {len(failed)} of them failures", *failed]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
