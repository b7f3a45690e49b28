"""What the figures say of the sources that they are of."""

from __future__ import annotations

import pytest
from peers import project


def test_the_version_is_that_of_the_sources_whatever_is_installed() -> None:
    text = (project.ROOT / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{project.version()}"\n' in text


def test_a_command_that_runs_other_sources_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_WHERE", "import json; print(json.__file__)")
    with pytest.raises(RuntimeError, match="does not run the sources"):
        project.version()
