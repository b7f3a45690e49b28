"""An independent judge of the rewrite, with `ast` and `difflib` only.

It knows nothing of the tool: it reads the package's files before and after, and lists what is
wrong. `faults` judges a rewrite; `state_faults` judges a tree by itself, for trees of which the
tool says that nothing is to be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.forks.oracle import kernels, text, warmup, worker
from tests.forks.oracle.modules import Package

BLOCK_TABLE = "v1/worker/block_table.py"
WORKER = "v1/worker/gpu_worker.py"
WARMUP = "v1/worker/gpu/warmup.py"


@dataclass(frozen=True)
class Hints:
    """What only whoever made the tree can know: the names of a fork's own monitor."""

    monitors: frozenset[str] = frozenset()


NONE = Hints()


def faults(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    package: str = "vllm",
    hints: Hints = NONE,
) -> list[str]:
    """Everything wrong with the rewrite of `before` into `after`; keys are paths in the package."""
    if set(before) != set(after):
        return ["a file came or went"]
    try:
        old, new = Package.parse(before, package), Package.parse(after, package)
    except (SyntaxError, ValueError) as error:
        return [f"does not compile: {error}"]
    launched = kernels.launched(old)
    changeable = {WORKER, WARMUP, *(kernel.path for kernel in launched)}
    found = [
        f"{path} was changed"
        for path in before
        if before[path] != after[path] and path not in changeable
    ]
    found += kernels.faults(old, new)
    found += warmup.faults(old, new)
    found += worker.faults(old, new, hints.monitors)
    for path in changeable & set(before):
        found += text.faults(path, before[path], after[path], old, launched)
    return found


def state_faults(
    tree: Mapping[str, bytes],
    package: str = "vllm",
    hints: Hints = NONE,
) -> list[str]:
    """What a tree lacks of the fix, whoever put it in and in whatever arm."""
    parsed = Package.parse(tree, package)
    found = worker.state_faults(parsed, hints.monitors)
    return kernels.state_faults(parsed) + found


def affected(tree: Mapping[str, bytes], package: str = "vllm") -> bool:
    """Whether a kernel that takes num_tokens is launched for the slot mapping."""
    return bool(kernels.launched(Package.parse(tree, package)))


def launched_names(tree: Mapping[str, bytes], package: str = "vllm") -> list[str]:
    return [kernel.name for kernel in kernels.launched(Package.parse(tree, package))]


def worker_faults(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """`faults` for the worker alone."""
    return worker.faults(Package.parse(before, "vllm"), Package.parse(after, "vllm"), frozenset())
