"""Names in vLLM that the recipe looks for: files, classes, methods, kernels, parameters."""

from __future__ import annotations

BLOCK_TABLE = "v1/worker/block_table.py"
BLOCK_TABLE_CLASS = "BlockTable"
METHOD = "compute_slot_mapping"
KERNEL = "_compute_slot_mapping_kernel"
# `max_num_tokens` stays specialised: it is fixed for an engine's life, and that helps.
PARAMETER = "num_tokens"
