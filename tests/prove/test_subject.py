"""The tree under proof, before and after, read without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.plan import FileChange, Outcome, Reason, Status
from codemods.prove.subject import Side, Subject, class_source, import_name, imported_roots, parse
from tests.checkouts import checkout
from tests.plans import plan_of

MODULE = "v1/a.py"


def side(root: Path, text: str | bytes) -> Side:
    return Side(checkout(root, {MODULE: text}), "before")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from third_party.acme.triton_utils import tl, triton", "third_party.acme"),
        ("from acme.triton_utils.importing import tl", "acme"),
        ("from ...triton_utils import tl, triton", "vllm"),
        ("import acme.triton_utils", "vllm"),
        ("from acme.triton_utilities import tl", "vllm"),
        ("def f(:", "vllm"),
    ],
)
def test_the_import_name_is_the_one_the_tree_uses(line: str, name: str, tmp_path: Path) -> None:
    assert import_name(side(tmp_path, f"{line}\n"), [MODULE]) == name


def test_a_missing_module_leaves_the_folders_name(tmp_path: Path) -> None:
    assert import_name(side(tmp_path, ""), ["v1/none.py"]) == "vllm"


def test_after_has_the_changed_bytes_and_before_those_on_the_disk(tmp_path: Path) -> None:
    before = checkout(tmp_path, {MODULE: "a = 1\n"})
    change = FileChange(f"vllm/{MODULE}", b"a = 1\n", b"a = 2\n", ("table",))
    subject = Subject(plan_of(changes=[change]), before)
    assert [one.read(MODULE) for one in subject.sides] == [b"a = 1\n", b"a = 2\n"]
    assert [one.label for one in subject.sides] == ["before", "after"]
    assert (tmp_path / "vllm" / MODULE).read_bytes() == b"a = 1\n"


def test_a_tree_with_nothing_to_change_has_one_side(tmp_path: Path) -> None:
    (only,) = Subject(plan_of(), checkout(tmp_path, {MODULE: "a = 1\n"})).sides
    assert (only.label, only.read(MODULE)) == ("after", b"a = 1\n")


def test_a_file_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    one = side(tmp_path, "")
    (tmp_path / "vllm/folder.py").mkdir()
    assert one.read("folder.py") is None
    assert one.parse("folder.py") is None
    assert one.parse("missing.py") is None


@pytest.mark.parametrize("source", [b"def f(:\n", b"x = 1\x00", b"# coding: none\n"])
def test_what_does_not_parse_is_none(source: bytes) -> None:
    assert parse(source) is None


@pytest.mark.parametrize(
    "source", [b"", b"\xef\xbb\xbfx = 1\n", b"# coding: latin-1\nx = '\xe9'\n"]
)
def test_what_python_takes_parses(source: bytes) -> None:
    assert parse(source) is not None


TEXT = """
import torch, numpy.linalg as la
from vllm.utils import x
from . import y

if z:
    import late


class Buffer:
    size = 1


def f():
    class Inner: ...
"""


def test_a_class_is_read_as_source(tmp_path: Path) -> None:
    one = side(tmp_path, TEXT)
    assert class_source(one, MODULE, "Buffer") == "class Buffer:\n    size = 1"
    assert class_source(one, MODULE, "Inner") is None
    assert class_source(one, "none.py", "Buffer") is None


def test_the_roots_of_absolute_imports_at_the_top_are_listed(tmp_path: Path) -> None:
    assert imported_roots(side(tmp_path, TEXT), MODULE) == {"torch", "numpy", "vllm"}
    assert imported_roots(side(tmp_path / "other", ""), MODULE) == frozenset()


def test_a_proof_of_every_plan_has_no_edits(tmp_path: Path) -> None:
    made = Outcome("table", Status.EDIT, Reason.ADDED, "Listed.")
    plan, home = plan_of([made]), checkout(tmp_path, {})
    own = Subject(plan, home, plan.recipes[0])
    assert (own.edit("table"), own.in_force("table")) == (made, True)
    assert (own.edit("caller"), own.in_force("caller")) == (None, False)
    every = Subject(plan, home)
    assert (every.edit("table"), every.in_force("table")) == (None, False)
