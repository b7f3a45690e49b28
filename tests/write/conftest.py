"""The trees of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.write.planned_tree import PlannedTree, folder_in_memory, planned_tree


@pytest.fixture
def tree(tmp_path: Path) -> PlannedTree:
    return planned_tree(tmp_path / "tree")


@pytest.fixture
def memory_tree() -> Iterator[PlannedTree]:
    with folder_in_memory() as folder:
        yield planned_tree(folder)
