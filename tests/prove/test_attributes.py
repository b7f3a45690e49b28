"""The attributes of a class are found in its source, its bases' too."""

from __future__ import annotations

from pathlib import Path

from codemods.engine.checkout import Checkout
from codemods.prove.attributes import attributes, compared_with_none, set_from_outside
from codemods.prove.subject import Side
from tests.prove.test_imports import FILES, proof

FILE = "v1/worker/gpu_model_runner.py"
TEXT = """
from .mixin import Mixin
from elsewhere import Foreign


class Runner(Mixin, Foreign):
    pinned = True
    kept: int

    def __init__(self):
        self.device, self.batch = None, 1
        self.batch.rows = 0

    @property
    def tables(self):
        return self.batch
"""
MIXIN = "class Mixin:\n    def start(self):\n        self.started = True\n"


def side(root: Path, text: str) -> Side:
    proof(root, "", {f"vllm/{FILE}": text, "vllm/v1/worker/mixin.py": MIXIN})
    return Side(Checkout.find(root), "after")


def test_own_and_inherited_ones_are_found(tmp_path: Path) -> None:
    found = attributes(side(tmp_path, TEXT), "vllm", FILE, "Runner")
    assert found is not None
    assert {"pinned", "kept", "device", "batch", "tables", "start", "started"} <= found
    assert "elsewhere" not in found


def test_no_class_of_that_name_is_not_a_class_without_attributes(tmp_path: Path) -> None:
    assert attributes(side(tmp_path, "X = 1\n"), "vllm", FILE, "Runner") is None
    assert attributes(side(tmp_path, "class (:\n"), "vllm", FILE, "Runner") is None


def test_what_a_module_sets_on_what_it_holds(tmp_path: Path) -> None:
    text = (
        "def f(self):\n    self.runner.extra = 1\n    self.other.more = 2\n    self.runner.read\n"
    )
    assert set_from_outside(side(tmp_path, text), FILE, "runner") == {"extra"}


def test_what_is_compared_with_none(tmp_path: Path) -> None:
    text = "if self.a.b is None or c is not None or d == 1:\n    pass\ne = getattr(x, 'f')\n"
    text += "if e is None:\n    pass\n"
    assert {"b", "c", "f"} <= compared_with_none(side(tmp_path, text), FILE)
    assert "d" not in compared_with_none(side(tmp_path, text), FILE)


def test_the_files_are_those_of_a_package() -> None:
    assert f"vllm/{FILE}" in FILES
