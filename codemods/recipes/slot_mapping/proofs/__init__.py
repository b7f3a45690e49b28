"""The recipe's proofs, in the order they run.

All but `order` run code of the tree: its block table, kernels and warm-up, never the rest of vLLM.
`codemods.prove.standins` lists what stands in for the rest.
"""

from __future__ import annotations

from codemods.prove.proof import Options, Proof, Row
from codemods.prove.subject import Subject
from codemods.recipes.slot_mapping.proofs.modules import WARMUP_FUNCTION
from codemods.recipes.slot_mapping.proofs.proof_process import in_own_process


def _order(subject: Subject, options: Options) -> Proof:
    # Brings LibCST, which the processes of the other proofs do without: they load this too.
    from codemods.recipes.warm_up import order_proof

    return order_proof.prove(subject, options, function=WARMUP_FUNCTION)


# `gpu-result` and `gpu-state` are the proofs of the same names, on the device.
PROOFS = (
    Row("order", _order),
    Row("keys", in_own_process("keys")),
    Row("compile", in_own_process("compile")),
    Row("result", in_own_process("result", interpret=True)),
    Row("state", in_own_process("state", interpret=True)),
    Row("gpu-compiles", in_own_process("gpu_compiles", device="cuda"), asked_by="gpu"),
    Row("gpu-result", in_own_process("result", device="cuda"), asked_by="gpu"),
    Row("gpu-state", in_own_process("state", device="cuda"), asked_by="gpu"),
    Row("gpu-cost", in_own_process("gpu_cost", device="cuda"), asked_by="gpu"),
)
