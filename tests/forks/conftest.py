"""What the searches share: a mix changes one file of a tree, so the others are parsed once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest

from codemods.transforms import source


@pytest.fixture(scope="module", autouse=True)
def parsed_once() -> Iterator[None]:
    """Parsing is a function of the bytes, and half of what planning a tree costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "parse", lru_cache(maxsize=64)(source.parse))
        yield
