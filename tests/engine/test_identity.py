"""The user's name for a mail: the repository's own, else the user's, and nothing is run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from codemods.engine.identity import setting
from tests.repositories import repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
KEY = "user.name"


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    """An environment whose user has a name in a file that theirs includes."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[include]\npath = more\n")
    (tmp_path / "home/more").write_text("[user]\nname = The User\n")
    return {"HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}


def test_the_users_own_setting_is_taken_with_what_it_includes(
    tmp_path: Path, users: dict[str, str]
) -> None:
    assert setting(tmp_path, KEY, users) == "The User"
    assert setting(repository(tmp_path / "r"), KEY, users) == "The User"


def test_the_repositorys_own_setting_comes_first(tmp_path: Path, users: dict[str, str]) -> None:
    root = repository(tmp_path / "r", {"a/b": b""})
    (root / ".git/config").write_text("[user]\nname = The Fork\n")
    assert setting(root, KEY, users) == "The Fork"
    assert setting(root / "a", KEY, users) == "The Fork"


def test_what_the_repositorys_setting_includes_is_not_read(
    tmp_path: Path, users: dict[str, str]
) -> None:
    root = repository(tmp_path / "r")
    (root / "more").write_text("[user]\nname = Included\n")
    (root / ".git/config").write_text(f"[include]\npath = {root / 'more'}\n")
    assert setting(root, KEY, users) == "The User"


@pytest.mark.parametrize("what", ["FIFO", "device", "noise", "folder"])
def test_a_configuration_that_cannot_be_read_is_passed_over(
    what: str, tmp_path: Path, users: dict[str, str]
) -> None:
    root = repository(tmp_path / "r")
    config = root / ".git/config"
    config.unlink()
    if what == "FIFO":
        os.mkfifo(config)
    elif what == "device":
        config.symlink_to("/dev/zero")
    elif what == "noise":
        config.write_bytes(b"[user\0\xff")
    else:
        config.mkdir()
    assert setting(root, KEY, users) == "The User"


def test_a_setting_that_is_nowhere_is_none(tmp_path: Path) -> None:
    assert setting(tmp_path, KEY, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}) is None


def test_without_git_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert setting(tmp_path, KEY, {}) is None
