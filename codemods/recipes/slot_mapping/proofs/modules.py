"""The modules that the slot-mapping proofs load, found without running them."""

from __future__ import annotations

import ast

from codemods.prove.modules import modules_of
from codemods.prove.subject import Side

BLOCK_TABLE = "v1/worker/block_table.py"
WARMUP = "v1/worker/gpu/warmup.py"
MODEL_RUNNER = "v1/worker/gpu_model_runner.py"
BUFFERS = "v1/utils.py"
ATTENTION = "v1/attention/backends/utils.py"

WARMUP_FUNCTION = "warmup_v1_slot_mapping_kernel"


def pad_slot_id(side: Side) -> int:
    """The tree's own PAD_SLOT_ID; -1, as in every release, where it is not a plain number."""
    tree = side.parse(ATTENTION)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "PAD_SLOT_ID" for target in node.targets
        ):
            try:
                return int(ast.literal_eval(node.value))
            except (ValueError, TypeError):
                return -1
    return -1


def table_modules(side: Side, package: str) -> dict[str, str]:
    """Modules that the block tables are made of, beside their own: dotted name to file."""
    return modules_of(side, package, BLOCK_TABLE, _TABLES)


_TABLES = frozenset({"BlockTable", "MultiGroupBlockTable"})
