"""A program is the machine's, never the current folder's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codemods.engine.programs import find_program, safe_path


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "made-up"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.parametrize("path", [".", "", "::", "./", "bin:.", ".:/nonexistent"])
def test_the_current_folder_is_not_searched(
    path: str, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path)
    assert find_program(program.name) is None
    assert "." not in safe_path().split(os.pathsep)


def test_absolute_folders_are_searched_in_order(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f".:/nonexistent:{program.parent}")
    assert find_program(program.name) == str(program)
