"""The recipe's proofs, in the order they run.

All but `order` run code of the tree: its zeroer, kernel and warm-up, never the rest of vLLM.
`codemods.prove.standins` lists what stands in for the rest.
"""

from __future__ import annotations

from functools import partial

from codemods.prove.proof import Row
from codemods.prove.proof_process import in_own_process
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from codemods.recipes.kv_block_zeroing.proofs.job import make_job
from codemods.recipes.warm_up import order_proof

_HERE = "codemods.recipes.kv_block_zeroing.proofs"

# `gpu-result` and `gpu-state` are the proofs of the same names, on the device.
PROOFS = (
    Row("order", partial(order_proof.prove, function=FUNCTION, v1_only=False)),
    Row("keys", in_own_process(f"{_HERE}.keys", make_job)),
    Row("compile", in_own_process(f"{_HERE}.compile", make_job)),
    Row("result", in_own_process(f"{_HERE}.result", make_job, interpret=True)),
    Row("state", in_own_process(f"{_HERE}.state", make_job, interpret=True)),
    Row("gpu-result", in_own_process(f"{_HERE}.result", make_job, device="cuda"), asked_by="gpu"),
    Row("gpu-state", in_own_process(f"{_HERE}.state", make_job, device="cuda"), asked_by="gpu"),
)
