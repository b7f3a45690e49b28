"""The one option of the whole suite: pytest reads options from here, not from folders below."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--vllm-tree",
        type=Path,
        default=None,
        help="for -m gpu: a vLLM tree (a checkout, an unpacked sdist or wheel), left as it is",
    )
