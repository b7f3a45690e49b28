"""Judges trees by running them, each before and after a rewrite, in one process for all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.forks.engine import Record
from tests.forks.trees import WORKER, Tree

MONITORS = (b"jit_monitor", b"watching", b"_STARTED")
FLAGS = (b"use_v2_model_runner", b"use_v2")


class Server:
    """`engine.py`, which answers with a tree's record for each tree."""

    def __init__(self) -> None:
        if not all(map(find_spec, ("torch", "triton"))):
            pytest.skip("needs the verify extra")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("engine.py"))],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def record(self, tree: Tree) -> Record:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            root = tree.write_to(Path(folder)) / tree.package
            self.process.stdin.write(json.dumps([str(root.parent), root.name]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        assert line, f"the process ended with status {self.process.wait()}"
        return Record(**json.loads(line))


@cache
def _server() -> Server:
    return Server()


def record(tree: Tree) -> Record:
    """What the tree did, on a CPU with Triton's interpreter."""
    return _recorded(tuple(sorted(tree.files.items())), tree.package)


@lru_cache(maxsize=32)
def _recorded(files: tuple[tuple[str, bytes], ...], package: str) -> Record:
    return _server().record(Tree(dict(files), package))


def faults(before: Tree, after: Tree) -> list[str]:
    """What running both shows to be wrong; nothing where `before` cannot run."""
    was, now = record(before), record(after)
    if was.error:
        return []
    if now.error:
        return [f"it no longer runs: {now.error}"]
    found = [f"{name} specialises num_tokens" for name in now.specialised]
    for start in now.launches:
        found += [f"start {start!r}: {fault}" for fault in _start(start, before, was, now)]
    if not now.left.items() <= was.left.items():
        found.append(f"tables are left in use: {now.left}")
    if now.live != was.live:
        found.append(f"rows in use are changed: {now.live}")
    if now.slots != was.slots:
        found.append("requests get other slots")
    return found


def fixed_faults(tree: Tree) -> list[str]:
    """What a tree lacks of the fix, whoever put it in; nothing where it cannot run."""
    now = record(tree)
    if now.error:
        return []
    found = [f"{name} specialises num_tokens" for name in now.specialised]
    for start in now.launches:
        if not _takes_v2(start, tree):
            found += [f"start {start!r}: {fault}" for fault in _reached(start, now)]
    return found


def dismissed_faults(tree: Tree) -> list[str]:
    """What speaks against leaving a tree alone as one without the bug."""
    return [f"requests launch {name}, which takes num_tokens" for name in record(tree).requested]


def _start(start: str, before: Tree, was: Record, now: Record) -> list[str]:
    if start in was.raised or start in now.raised:
        same = was.raised.get(start) == now.raised.get(start)
        return [] if same else [f"raised {now.raised.get(start)}"]
    if _takes_v2(start, before):
        return [] if now.launches[start] == was.launches[start] else ["V2 launches the kernel"]
    # A fork's own early return leaves out the monitor with all that comes before it.
    monitored = any(name in before.inside[WORKER] for name in MONITORS)
    if monitored and start in was.unwatched and start in now.unwatched:
        return []
    return _reached(start, now)


def _takes_v2(start: str, tree: Tree) -> bool:
    return "v2" in start.split() and any(flag in tree.inside[WORKER] for flag in FLAGS)


def _reached(start: str, now: Record) -> list[str]:
    launches, wanted = set(now.launches[start]), set(now.requested)
    late = sorted(name for name in launches if name.startswith("!"))
    if start in now.raised:
        return []
    if late:
        return [f"{', '.join(late)} after the monitor"]
    # With one request at a time the kernel for several can never be launched.
    reached = bool(wanted & launches) if "small" in start.split() else wanted <= launches
    return [] if reached or not wanted else [f"{sorted(wanted - launches)} not launched"]
