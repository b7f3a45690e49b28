"""The cache of releases: whole, or read again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from codemods.release import cache, fetch
from codemods.release.names import Source
from tests.release.package_index import (
    PACKAGE,
    WHEEL,
    Index,
    code_of,
    refuses,
    wheel,
)

pytest.importorskip("pypi_simple")
pytest.importorskip("remotezip")


def test_a_cached_file_that_was_changed_is_read_again(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    (tree / "vllm/v1/worker/block_table.py").write_bytes(b"changed")
    assert cache.load(tree.parent) is None
    assert code_of(fetch("0.21.0")) == PACKAGE


@pytest.mark.parametrize("name", ["SHA256SUMS", "tree/vllm/__init__.py"])
def test_a_cache_that_lost_a_file_is_read_again(index: Index, name: str) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    (tree.parent / name).unlink()
    assert code_of(fetch("0.21.0")) == PACKAGE


def test_of_two_at_once_the_first_result_stays(tmp_path: Path) -> None:
    slot = cache.slot(tmp_path, "0.21.0", Source.WHEEL)
    first = cache.store(slot, PACKAGE, WHEEL)
    seen = (first / "vllm/__init__.py").stat().st_ino
    assert cache.store(slot, PACKAGE, WHEEL) == first
    assert (first / "vllm/__init__.py").stat().st_ino == seen
    assert [path.name for path in tmp_path.iterdir()] == [slot.name]


def test_an_interrupted_write_leaves_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    slot = cache.slot(tmp_path, "0.21.0", Source.WHEEL)
    refuses(partial(cache.store, slot, PACKAGE, WHEEL), tmp_path, "No space left", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_made_is_one_clear_line(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("VLLM_CODEMODS_CACHE", str(tmp_path / "file" / "cache"))
    index.offer((WHEEL, wheel(PACKAGE)))
    refuses(partial(fetch, "0.21.0"), kept, "VLLM_CODEMODS_CACHE")


def test_the_cache_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VLLM_CODEMODS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.slot(None, "0.21.0", Source.WHEEL).parent == tmp_path / "vllm-codemods"


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_the_cache_is_in_the_home_folder_when_xdg_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.delenv("VLLM_CODEMODS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = tmp_path / ".cache" / "vllm-codemods"
    assert cache.slot(None, "0.21.0", Source.WHEEL).parent == expected
