"""Which names of an archive are read."""

from __future__ import annotations

import pytest

from codemods.release.names import Source, wanted
from tests.release.package_index import (
    HOSTILE,
)


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("name", HOSTILE)
def test_an_odd_name_is_not_wanted(name: str, source: Source) -> None:
    assert not wanted(name, source)
