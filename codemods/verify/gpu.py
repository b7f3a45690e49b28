"""The proofs that need a GPU: what compiles, what comes out, what is left behind, what it costs.

Each runs the tree's own block table and warm-up on the GPU, in a process of its own with a new
Triton cache, and needs torch and Triton, not vLLM's other dependencies. `gpu-result` and
`gpu-state` are the proofs of the same names, on the device; the other two are only for here.
"""

from __future__ import annotations

from collections.abc import Iterator

from codemods.outcome import Plan
from codemods.verify.isolated import run_worker
from codemods.verify.proof import Options, Proof

DEVICE = "cuda"
WORKERS = {
    "gpu-compiles": "gpu_compiles",
    "gpu-result": "result",
    "gpu-state": "state",
    "gpu-cost": "gpu_cost",
}
ROWS = tuple(WORKERS)


def prove(name: str, plan: Plan, options: Options) -> Proof:
    """The row called `name`; skipped where torch sees no GPU."""
    return run_worker(name, WORKERS[name], plan, options, device=DEVICE)


def prove_gpu(plan: Plan, options: Options) -> Iterator[Proof]:
    """Every row, as each proof ends."""
    for name in ROWS:
        yield prove(name, plan, options)
