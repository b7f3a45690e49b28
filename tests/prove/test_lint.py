"""Lint: nothing that ruff, git or mypy did not say before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.commits import CommitFiles
from codemods.engine.git import opened
from codemods.engine.objects import reading
from codemods.engine.plan import FileChange, Outcome, Reason, Status, Tree
from codemods.engine.repository import Repository
from codemods.prove import lint, ruff
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.prove.subject import Subject
from tests.plans import plan_of
from tests.recipes.slot_mapping.rewritten import plan, subject, swap
from tests.repositories import repository

SETTINGS = '[tool.ruff]\nline-length = 100\n[tool.ruff.lint]\nselect = ["E", "F", "W"]\n'


def one_file(root: Path, before: str, after: str, name: str = "vllm/a.py") -> Subject:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before.encode())
    outcome = Outcome("table", Status.EDIT, Reason.ADDED, "", name, 1)
    change = FileChange(name, before.encode(), after.encode(), ("table",))
    made = plan_of([outcome], [change], tree=Tree(root, "vllm"))
    return Subject(made, Checkout(root, "vllm"))


def proved(found: Subject) -> Proof:
    return lint.prove(found, Options())


def test_a_right_rewrite_is_clean(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    row = proved(subject(plan(tmp_path)))
    assert row.status is ProofStatus.PASS, row
    assert "the tree's settings" in row.detail


def test_an_unused_import_fails(tmp_path: Path) -> None:
    unused = swap(
        "from collections.abc import Callable\n",
        "import json\nfrom collections.abc import Callable\n",
    )
    row = proved(subject(plan(tmp_path, warmup=unused)))
    assert row.status is ProofStatus.FAIL
    assert "vllm/v1/worker/gpu/warmup.py: F401" in row.detail


def test_a_file_that_was_formatted_must_stay_so(tmp_path: Path) -> None:
    row = proved(one_file(tmp_path, "a = 1\n", "a = 1\nb=2\n"))
    assert row.status is ProofStatus.FAIL
    assert "ruff format" in row.detail


def test_a_file_that_was_never_formatted_need_not_be(tmp_path: Path) -> None:
    row = proved(one_file(tmp_path, "a=1\n", "a=1\nb = 2\n"))
    assert row.status is ProofStatus.PASS, row
    assert row.figures["unformatted_before"] == 1


def test_what_was_there_before_is_not_held_against_the_rewrite(tmp_path: Path) -> None:
    before = "import json\n\na = 1\n"
    assert proved(one_file(tmp_path, before, before + "b = 2\n")).status is ProofStatus.PASS


def test_the_same_complaint_once_more_is_a_new_one(tmp_path: Path) -> None:
    before = "a = x\n"
    row = proved(one_file(tmp_path, before, before + "b = x\n"))
    assert row.status is ProofStatus.FAIL
    assert "Undefined name `x`" in row.detail


def test_white_space_at_a_line_end_fails(tmp_path: Path) -> None:
    text = '"""Text.\n'
    row = proved(one_file(tmp_path, f'{text}"""\n', f'{text}\nMore. \n"""\n'))
    assert row.status is ProofStatus.FAIL
    assert "vllm/a.py:3: trailing whitespace" in row.detail


def test_carriage_returns_are_no_white_space_where_the_file_has_them(tmp_path: Path) -> None:
    row = proved(one_file(tmp_path, "a = 1\r\n", "a = 1\r\nb = 2\r\n"))
    assert row.status is ProofStatus.PASS, row


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


def test_without_ruff_the_row_is_skipped_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ruff, "installed", lambda _: None)
    row = proved(subject(plan(tmp_path)))
    assert (row.status, row.detail) == (
        ProofStatus.SKIPPED,
        "ruff is not installed: pip install 'vllm-codemods[verify]'",
    )


def test_nothing_is_left_in_the_tree(tmp_path: Path) -> None:
    made = plan(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    proved(subject(made))
    assert sorted(tmp_path.rglob("*")) == before


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


# What the tree may try


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
