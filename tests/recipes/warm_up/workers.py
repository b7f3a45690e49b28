"""A worker's file, and the tree around it that has a warm-up module and no more."""

from __future__ import annotations

from pathlib import Path

from codemods.engine.checkout import Checkout
from codemods.engine.sources import SourceFile, Sources

# Inside of a bigger package, which a worker may name in its imports.
PACKAGE = "acme/vllm"


def sources(*functions: str) -> Sources:
    """A tree whose warm-up module defines V2's function and these."""
    names = ("warmup_kernels", *functions)
    text = "".join(f"def {name}(model_runner, *rest): ...\n" for name in names)
    name = f"{PACKAGE}/v1/worker/gpu/warmup.py"
    return Sources(Checkout(Path("nowhere"), PACKAGE, overlay={name: text.encode()}))


def worker_file(data: bytes) -> SourceFile:
    return SourceFile(f"{PACKAGE}/v1/worker/gpu_worker.py", data)
