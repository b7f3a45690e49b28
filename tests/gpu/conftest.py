"""What the GPU tests need, and why they are skipped where it is not there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout, UsageError
from codemods.engine.plan import Plan
from codemods.engine.planning import make_plan


@pytest.fixture(scope="session")
def vllm_tree(request: pytest.FixtureRequest) -> Path:
    """The tree named on the command line; skips the test where it or a GPU is missing."""
    tree: Path | None = request.config.getoption("--vllm-tree")
    if tree is None:
        pytest.skip("no --vllm-tree was given")
    for needed in ("torch", "triton", "numpy"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU on this machine")
    return tree


@pytest.fixture(scope="session")
def plan(vllm_tree: Path) -> Plan:
    try:
        return make_plan(Checkout.find(vllm_tree))
    except UsageError as error:
        pytest.skip(str(error))
