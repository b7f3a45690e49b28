"""What vLLM calls the things that the recipe looks at."""

from __future__ import annotations

UTILS = "v1/worker/utils.py"
CLASS = "KVBlockZeroer"
METHOD = "zero_block_ids"
KERNEL = "_zero_kv_blocks_kernel"
PARAMETER = "n_blocks"

V1_RUNNER = "v1/worker/gpu_model_runner.py"
V2_RUNNER = "v1/worker/gpu/model_runner.py"
KERNEL_WARMUP = "model_executor/warmup/kernel_warmup.py"
