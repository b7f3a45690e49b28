"""Proofs that the rewrite is right, on a machine with no GPU, a row each.

`prove` yields each row as its proof ends, in the order of `PROOFS`. The proofs from `keys` to
`state` run code of the tree: its block table, kernels and warm-up, never the rest of vLLM, in a
process of their own with a time limit. `standins` lists what stands in for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from codemods.outcome import Plan
from codemods.verify import gpu, isolated, lint, order
from codemods.verify.proof import DEFAULT_TARGETS, Options, Proof, ProofStatus

__all__ = ["DEFAULT_TARGETS", "PROOFS", "Options", "Proof", "ProofStatus", "proofs", "prove"]

# In the order they run; `mypy` and those of `gpu` only when asked for.
PROOFS = ("syntax", "lint", "mypy", "order", "keys", "compile", "result", "state", *gpu.ROWS)
OPTIONAL = frozenset({"mypy", *gpu.ROWS})
# Under Triton's interpreter kernels run on the CPU; the others only look at them.
INTERPRETED = frozenset({"result", "state"})


def proofs(options: Options) -> tuple[str, ...]:
    """The names of the rows that `prove` yields, in order."""
    wanted = {"mypy"} if options.mypy else set()
    wanted |= set(gpu.ROWS) if options.gpu else set()
    return tuple(name for name in PROOFS if name not in OPTIONAL - wanted)


def prove(plan: Plan, options: Options) -> Iterator[Proof]:
    """Prove the plan's rewrite, or the tree as it stands when there is nothing to change."""
    for name in proofs(options):
        yield _prove(name, plan, options)


def _prove(name: str, plan: Plan, options: Options) -> Proof:
    if name == "syntax":
        # Only here: a worker, which imports this package too, needs no parser of the recipe's.
        from codemods.verify import syntax

        return syntax.prove(plan)
    if name == "lint":
        return lint.prove(plan)
    if name == "mypy":
        return lint.prove_types(plan, options.timeout)
    if name == "order":
        return order.prove(plan)
    if name in gpu.ROWS:
        return gpu.prove(name, plan, options)
    return isolated.run_worker(name, name, plan, options, interpret=name in INTERPRETED)
