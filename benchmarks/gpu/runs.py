"""Serving many trees on one machine: for counts all the time, for times with nothing else going on.

A `Job` is one server. Jobs whose times count start together in a wave; when all are up the first
requests go to one server after another while the others are idle. Jobs that are only counted
start whenever there is room.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases import SIDES, Case
from server import Served, Server, is_kernel_of

SETTLE_S = 2.0
Result = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One server of one tree; `run` tells repeats of the same server apart."""

    tree: Served
    case: Case
    run: int = 1

    @property
    def name(self) -> str:
        return f"{self.tree.label}/{self.case.name}/{self.tree.side}/{self.run}"

    @property
    def facts(self) -> Result:
        return {
            "kind": "serve",
            "name": self.name,
            "tree": self.tree.label,
            "case": self.case.name,
            "side": self.tree.side,
            "run": self.run,
        }


@dataclass(frozen=True)
class Machine:
    """Where servers run: a folder for their caches and logs, the models, the GPUs."""

    work: Path
    models: Path
    gpus: int = 1
    python: str = sys.executable
    started: list[Server] = field(default_factory=list)

    def start(self, job: Job, number: int) -> Server:
        work = self.work / job.name.replace("/", "-")
        shutil.rmtree(work, ignore_errors=True)
        gpus = self.share(job.case.gpus, number)
        server = Server(job.tree, job.case, work, self.models, gpus, self.python)
        self.started.append(server)
        return server

    def stop_all(self) -> None:
        for server in self.started:
            server.stop()

    def share(self, wanted: int, number: int) -> Sequence[int]:
        """GPUs for the `number`th server: the next `wanted` of them, round and round."""
        if self.gpus <= wanted:
            return ()
        shares = self.gpus // wanted
        first = (number % shares) * wanted
        return range(first, first + wanted)


def in_order(group: Iterable[Job]) -> list[Job]:
    """The jobs of one comparison as they are asked: forward in odd runs, backward in even ones."""
    jobs = sorted(group, key=lambda job: SIDES.index(job.tree.side))
    return jobs if jobs and jobs[0].run % 2 else jobs[::-1]


def run_wave(
    jobs: Sequence[Job], machine: Machine, limit_s: float, done: Callable[[Result], None]
) -> None:
    """Start the jobs together, wait for all, and time their first requests one by one."""
    end = time.monotonic() + limit_s
    servers = [machine.start(job, number) for number, job in enumerate(jobs)]
    try:
        for server in servers:
            server.wait(end - time.monotonic())
        time.sleep(SETTLE_S)
        print(f"-- {memory()} with {len(servers)} servers up", flush=True)
        first = {}
        for job, server in zip(jobs, servers, strict=True):
            if server.start_s is not None:
                first[job.name] = (time.time(), server.ask_first())
        with ThreadPoolExecutor(len(servers)) as pool:
            more = list(pool.map(lambda s: s.ask_more() if s.start_s is not None else [], servers))
        for job, server, rest in zip(jobs, servers, more, strict=True):
            at, requests = first.get(job.name, (None, []))
            facts = server.result(requests + rest, at)
            done(job.facts | facts | {"timed": True, "together": len(jobs)})
    finally:
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(Server.stop, servers))


def memory() -> str:
    """What the machine has left for more servers."""
    with open("/proc/meminfo") as file:
        free = next(line.split()[1] for line in file if line.startswith("MemAvailable"))
    return f"{int(free) >> 20} GiB of memory free"


def run_one(job: Job, machine: Machine, number: int, limit_s: float) -> Result:
    """One server, asked as soon as it is up, whatever else runs: its times count for nothing."""
    server = machine.start(job, number)
    try:
        at, requests = None, []
        if server.wait(limit_s):
            at = time.time()
            requests = server.ask_first() + server.ask_more()
        return job.facts | server.result(requests, at) | {"timed": False}
    finally:
        server.stop()


Action = Callable[[int], Result]


def run_all(actions: dict[str, Action], at_once: int, done: Callable[[Result], None]) -> None:
    """Run the actions, `at_once` at a time; one that raises gives a result that says so."""

    def one(number: int, name: str, action: Action) -> Result:
        try:
            return action(number)
        except Exception as error:  # one job's fault must not keep the others
            return {"name": name, "error": repr(error)}

    with ThreadPoolExecutor(at_once) as pool:
        futures = [
            pool.submit(one, number, name, action)
            for number, (name, action) in enumerate(actions.items())
        ]
        for future in as_completed(futures):
            done(future.result())


def compiled(result: Result, recipe: str, when: str) -> int:
    """How many specialisations of the recipe's kernels the server's processes compiled `when`."""
    kernels = set(result["kernels"][recipe])
    return sum(
        count
        for process in result["compiles"][when].values()
        for kernel, count in process.items()
        if kernel in kernels
    )


def named(result: Result, recipe: str) -> int:
    """How many processes' monitors named one of the recipe's kernels."""
    kernels = set(result["kernels"][recipe])
    return len({
        (r["process"], r["kernel"]) for r in result["monitor"]
        if r["kernel"] in kernels or is_kernel_of(recipe, r["kernel"])
    })  # fmt: skip


def others_named(result: Result) -> list[str]:
    """Kernels that the monitor named and that belong to no recipe."""
    ours = {kernel for kernels in result["kernels"].values() for kernel in kernels}
    return sorted(
        {r["kernel"] for r in result["monitor"]}
        - ours
        - {
            r["kernel"] for r in result["monitor"]
            if any(is_kernel_of(recipe, r["kernel"]) for recipe in result["kernels"])
        }
    )  # fmt: skip


def statuses(result: Result) -> list[int]:
    return [request["status"] for request in result["requests"]]


def differing(before: Result, after: Result) -> list[int]:
    """Places of the requests that were answered otherwise; those batched by chance are left out."""
    pairs = zip(before["requests"], after["requests"], strict=True)
    return [
        place
        for place, (a, b) in enumerate(pairs)
        if not a.get("together") and a.get("answer") != b.get("answer")
    ]


def row(result: Result) -> str:
    """One line: start, the first requests, compiles of each recipe's kernel, what was named."""
    name = f"{result['name']:44}"
    if "requests" not in result or not result["requests"]:
        return f"{name} FAILED {str(result.get('error', ''))[-200:]!r}"
    times = " ".join(f"{request['ms']:6.0f}" for request in result["requests"][:3])
    parts = [
        f"{recipe} {compiled(result, recipe, 'start')}+{compiled(result, recipe, 'requests')}"
        f"{' NAMED' if named(result, recipe) else ''}"
        for recipe in result["kernels"]
    ]
    bad = [code for code in statuses(result) if code != 200]
    note = "" if result["timed"] else " (not timed)"
    return (
        f"{name} up {result['start_s']:5.1f} s |{times} ms{note}"
        f" | compiles at start+requests: {', '.join(parts)} | others named: "
        f"{len(others_named(result))}" + (f" | HTTP {bad}" if bad else "")
    )
