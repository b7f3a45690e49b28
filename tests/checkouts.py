"""Small checkouts written by a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from codemods.engine.checkout import WORKER, Checkout


def checkout(root: Path, files: Mapping[str, str | bytes]) -> Checkout:
    """A checkout with these files of a package `vllm`, and a worker so that it is found."""
    package = root / "vllm"
    for name, text in {WORKER: "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Checkout.find(root)
