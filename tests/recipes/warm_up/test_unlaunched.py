"""Kernels that are there by their names, and classes of which there are two."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine import classes
from codemods.engine.checkout import WORKER, Checkout
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, Sources
from codemods.recipes.warm_up.unlaunched import refuse_kernel_elsewhere, refuse_two_classes

FILE = "v1/worker/pages.py"


def checkout(root: Path, text: str) -> Checkout:
    for name, data in {WORKER: "", FILE: text}.items():
        path = root / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data)
    return Checkout.find(root)


def refused_kernel(root: Path, text: str) -> Refusal | None:
    try:
        refuse_kernel_elsewhere(checkout(root, text), "v1/worker", "_clear", "Pages.clear")
    except Refusal as refusal:
        return refusal
    return None


def test_a_kernel_that_nothing_launches_is_refused_where_it_is(tmp_path: Path) -> None:
    refusal = refused_kernel(tmp_path, "import triton\n\n\n@triton.jit\ndef _clear(n):\n    pass\n")
    assert refusal is not None
    assert refusal.reason is Reason.NOT_LAUNCHED
    assert (refusal.file, refusal.line) == (f"vllm/{FILE}", 5)
    assert "the tool found no launch of it in Pages.clear" in refusal.detail


@pytest.mark.parametrize(
    "text", ["", "def _clear_all(n):\n    pass\n", "from elsewhere import _clear\n", "# _clear(\n"]
)
def test_a_tree_without_such_a_kernel_is_let_by(tmp_path: Path, text: str) -> None:
    assert refused_kernel(tmp_path, text) is None


def test_two_classes_of_one_name_are_refused(tmp_path: Path) -> None:
    text = "if FAST:\n    class Pages:\n        pass\nelse:\n    class Pages:\n        pass\n"
    with pytest.raises(Refusal, match="Pages is defined more than once") as caught:
        refuse_two_classes(owner(tmp_path, text))
    assert (caught.value.reason, caught.value.line) == (Reason.AMBIGUOUS, 5)


@pytest.mark.parametrize("text", ["", "class Pages:\n    pass\n", "class Other:\n    pass\n"])
def test_one_class_or_none_is_let_by(tmp_path: Path, text: str) -> None:
    refuse_two_classes(owner(tmp_path, text))


def owner(root: Path, text: str) -> classes.Lineage | None:
    sources = Sources(checkout(root, text))
    file = sources.read(FILE)
    assert file is not None
    return classes.lineage(sources, file, "Pages")
