"""One side of a proof, of modules that a test writes beside the worker."""

from __future__ import annotations

from pathlib import Path

from codemods.engine.checkout import Checkout
from codemods.prove.subject import Side


def side(root: Path, **files: str) -> Side:
    for name, text in files.items():
        path = root / "vllm/v1/worker" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Side(Checkout(root, "vllm"), "after")
