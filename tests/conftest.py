"""What the whole suite shares: an option, and an environment without the runner's own terminal."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    # pytest reads options from here, not from folders below.
    parser.addoption(
        "--vllm-tree",
        type=Path,
        default=None,
        help="for -m gpu: a vLLM tree (a checkout, an unpacked sdist or wheel), left as it is",
    )


@pytest.fixture(autouse=True)
def no_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-xdist gives its workers COLUMNS, by which the command would fold its tables."""
    monkeypatch.delenv("COLUMNS", raising=False)
