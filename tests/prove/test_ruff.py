"""ruff judges under the tree's own settings, and nothing else of the tree has a say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.commits import CommitFiles
from codemods.engine.git import opened
from codemods.engine.objects import reading
from codemods.engine.repository import Repository
from codemods.prove import lint, ruff
from codemods.prove.proof import Options, ProofStatus
from codemods.prove.subject import Subject
from tests.prove.test_lint import one_file, proved
from tests.recipes.slot_mapping.rewritten import plan, subject
from tests.repositories import repository


def test_settings_above_the_tree_are_not_the_trees(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text("line-length = 20\n")
    tree = tmp_path / "tree"
    row = proved(one_file(tree, "a = 1\n", "a = 1\nbb = '012345678901234567'\n".replace("'", '"')))
    assert row.status is ProofStatus.PASS, row
    assert row.figures["own_settings"] == 0


def test_settings_of_the_repository_the_tree_lies_in_hold(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "ruff.toml").write_text('[lint]\nselect = ["D100"]\n')
    row = proved(one_file(tmp_path / "third_party", '"""Doc."""\n', "a = 1\n"))
    assert row.status is ProofStatus.FAIL
    assert "D100" in row.detail


def test_a_file_that_the_tree_excludes_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text('exclude = ["vllm"]\n')
    row = proved(one_file(tmp_path, "a = 1\n", "a = 1\nimport os\n"))
    assert row.status is ProofStatus.PASS, row


def test_settings_that_ruff_does_not_take_skip_the_row(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text('required-version = "==0.0.1"\n')
    row = proved(one_file(tmp_path, "a = 1\n", "a = 2\n"))
    assert row.status is ProofStatus.SKIPPED
    assert row.detail.startswith("ruff does not take the tree's settings: ")


def test_without_ruff_the_row_is_skipped_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ruff, "installed", lambda _: None)
    row = proved(subject(plan(tmp_path)))
    assert (row.status, row.detail) == (
        ProofStatus.SKIPPED,
        "ruff is not installed",
    )


def test_settings_are_read_from_a_ref_as_from_its_checkout(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text('[lint]\nselect = ["D100"]\n')
    found = one_file(tmp_path, '"""Doc."""\n', "a = 1\n")
    repository(tmp_path)
    (tmp_path / "ruff.toml").unlink()
    place = Repository.at(tmp_path)
    assert place is not None
    with opened(place) as running, reading(running) as objects:
        files = CommitFiles(objects, objects.root(objects.commit("HEAD")), "r")
        checkout = Checkout(tmp_path, "vllm", source=files, ref="HEAD")
        row = proved(Subject(found.plan, checkout))
    assert row.status is ProofStatus.FAIL
    assert "D100" in row.detail


def test_no_module_or_program_of_the_tree_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = one_file(tmp_path, "a = 1\n", "a = 2\n")
    marker = tmp_path / "ran"
    for name in ("ruff.py", "ruff/__main__.py", "json.py", "sitecustomize.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"open({str(marker)!r}, 'w')\n")
    (tmp_path / "git").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert proved(found).status is ProofStatus.PASS
    assert not marker.exists()


@pytest.mark.parametrize("name", ["ruff.toml", "pyproject.toml", "vllm/.ruff.toml"])
def test_settings_that_are_no_file_skip_the_row(name: str, tmp_path: Path) -> None:
    found = one_file(tmp_path, "a = 1\n", "a = 2\n")
    os.mkfifo(tmp_path / name)
    row = proved(found)
    assert row.status is ProofStatus.SKIPPED
    assert "not a regular file" in row.detail


def test_settings_that_never_end_are_left_at_the_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.toml")
    (tmp_path / "ruff.toml").write_text(f'extend = "{tmp_path}/endless.toml"\n')
    found = one_file(tmp_path, "a = 1\n", "a = 2\n")
    row = lint.prove(found, Options(timeout=1))
    assert row.status is ProofStatus.SKIPPED
    assert row.detail == "ruff did not end within 1 s"
