"""The recipe's proofs, in the order they run.

All but `order` run code of the tree: its block table, kernels and warm-up, never the rest of vLLM.
`codemods.prove.standins` lists what stands in for the rest.
"""

from __future__ import annotations

from codemods.prove.proof import Options, Proof, Row
from codemods.prove.subject import Subject
from codemods.recipes.slot_mapping.proofs.modules import WARMUP_FUNCTION
from codemods.recipes.slot_mapping.proofs.workers import in_worker


def _order(subject: Subject, options: Options) -> Proof:
    # Brings LibCST, which the processes of the other proofs do without: they load this too.
    from codemods.recipes.warm_up import order

    return order.prove(subject, options, function=WARMUP_FUNCTION)


# `gpu-result` and `gpu-state` are the proofs of the same names, on the device.
PROOFS = (
    Row("order", _order),
    Row("keys", in_worker("keys")),
    Row("compile", in_worker("compile")),
    Row("result", in_worker("result", interpret=True)),
    Row("state", in_worker("state", interpret=True)),
    Row("gpu-compiles", in_worker("gpu_compiles", device="cuda"), asked_by="gpu"),
    Row("gpu-result", in_worker("result", device="cuda"), asked_by="gpu"),
    Row("gpu-state", in_worker("state", device="cuda"), asked_by="gpu"),
    Row("gpu-cost", in_worker("gpu_cost", device="cuda"), asked_by="gpu"),
)
