"""What the packaging tests skip for: an index that cannot be reached, and nothing else."""

from __future__ import annotations

from pathlib import Path

import consumers
import pytest

from codemods.release import ReleaseError, UnreachableError


def raising(error: Exception) -> object:
    def fetch(version: str) -> Path:
        raise error

    return fetch


def test_an_unreachable_index_skips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(consumers, "fetch", raising(UnreachableError("no route")))
    with pytest.raises(pytest.skip.Exception, match="no route"):
        consumers.release("0.21.0", tmp_path)


def test_a_release_with_a_wrong_hash_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(consumers, "fetch", raising(ReleaseError("hash differs")))
    with pytest.raises(ReleaseError, match="hash differs"):
        consumers.release("0.21.0", tmp_path)
