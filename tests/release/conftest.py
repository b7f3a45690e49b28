"""Each test reads from an index of its own and keeps in a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release.package_index import Index, served


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    index = Index()
    with served(index) as index.url:
        for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("VLLM_CODEMODS_CACHE", str(tmp_path / "cache"))
        yield index


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache"
