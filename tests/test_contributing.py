"""The worked example of CONTRIBUTING.md, taken from the page and run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Reason, Status, Verdict
from codemods.output.landing import lands
from codemods.output.patch import unified
from codemods.write import write

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
FILE = "vllm/v1/worker/copy_blocks.py"


def example(name: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```\n", text, re.DOTALL)
    assert found is not None, f"CONTRIBUTING.md has no example {name!r}"
    return found[1]


@pytest.fixture
def make_plan() -> Callable[[Checkout], Plan]:
    scope: dict[str, Any] = {}
    exec(compile(example("recipe"), str(PAGE), "exec"), scope)
    return scope["make_plan"]  # type: ignore[no-any-return]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("vllm/__init__.py", "vllm/v1/worker/block_table.py", FILE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / FILE).write_text(example("before"))
    (tmp_path / "vllm/v1/worker/gpu_worker.py").write_text("class Worker:\n    pass\n")
    return tmp_path


def test_the_recipe_gives_the_patch_that_the_page_shows(
    make_plan: Callable[[Checkout], Plan], tree: Path
) -> None:
    plan = make_plan(Checkout.find(tree))
    assert plan.verdict is Verdict.FIXABLE
    assert unified(plan).decode() == example("patch")
    assert lands(plan, unified(plan))


def test_a_second_run_finds_nothing_to_do(
    make_plan: Callable[[Checkout], Plan], tree: Path
) -> None:
    plan = make_plan(Checkout.find(tree))
    write(tree, plan.changes)
    again = make_plan(Checkout.find(tree))
    assert again.verdict is Verdict.ALREADY_FIXED
    assert unified(again) == b""


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        (None, Status.NOT_NEEDED, Reason.NO_KERNEL),
        ("def broken(:\n", Status.REFUSED, Reason.UNPARSABLE),
        ("x = 1\n", Status.REFUSED, Reason.NO_ANCHOR),
    ],
)
def test_a_tree_without_the_kernel_stays_as_it_is(
    make_plan: Callable[[Checkout], Plan],
    tree: Path,
    source: str | None,
    status: Status,
    reason: Reason,
) -> None:
    if source is None:
        (tree / FILE).unlink()
    else:
        (tree / FILE).write_text(source)
    plan = make_plan(Checkout.find(tree))
    assert [(outcome.status, outcome.reason) for outcome in plan.outcomes] == [(status, reason)]
    assert plan.changes == ()


def test_every_module_that_the_page_names_is_there() -> None:
    names = re.findall(r"`(codemods/[\w/.]+)`", PAGE.read_text(encoding="utf-8"))
    assert names
    assert [name for name in names if not (PAGE.parent / name).exists()] == []
