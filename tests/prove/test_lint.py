"""Lint: nothing that ruff, git or mypy did not say before."""

from __future__ import annotations

from pathlib import Path

from codemods.engine.checkout import Checkout
from codemods.engine.plan import FileChange, Outcome, Reason, Status, Tree
from codemods.prove import lint
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.prove.subject import Subject
from tests.plans import plan_of
from tests.recipes.slot_mapping.rewritten import plan, subject, swap

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


def test_nothing_is_left_in_the_tree(tmp_path: Path) -> None:
    made = plan(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    proved(subject(made))
    assert sorted(tmp_path.rglob("*")) == before
