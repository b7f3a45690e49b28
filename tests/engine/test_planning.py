"""A plan holds what would change, or nothing where anything is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import FileChange, Plan, Status, Verdict
from codemods.engine.planning import breaks, make_plan
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, Tree, fork

BASE = fork("00-monitor-in-triton-utils").tree
RECIPES = registry.chosen(())
KERNEL, WARM, WORK, UNIT = RECIPES[0].edits


def plan(
    root: Path,
    tree: Tree = BASE,
    only: frozenset[str] = frozenset(),
    skip: frozenset[str] = frozenset(),
) -> Plan:
    tree.write_to(root)
    return make_plan(Checkout.find(root), RECIPES, only=only, skip=skip)


def test_a_fixable_tree_has_its_changes_sorted_by_path(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert made.verdict is Verdict.FIXABLE
    assert [change.path for change in made.changes] == [
        f"vllm/{name}" for name in (BLOCK_TABLE, WARMUP, WORKER)
    ]
    assert all(change.before == BASE.files[change.path] for change in made.changes)


def test_the_tree_is_the_one_that_was_found(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert made.tree.root == tmp_path
    assert made.tree.package == "vllm"


@pytest.mark.parametrize(
    ("only", "skip", "made"),
    [
        ({KERNEL}, set(), {KERNEL}),
        ({WARM}, set(), {WARM}),
        ({WARM, WORK}, set(), {WARM, WORK}),
        (set(), {KERNEL}, {WARM, WORK}),
        (set(), {WORK}, {KERNEL, WARM}),
        (set(), {WARM, WORK}, {KERNEL}),
        (set(), {UNIT}, {KERNEL, WARM, WORK}),
        ({KERNEL, WARM}, {WARM}, {KERNEL}),
    ],
)
def test_only_and_skip_leave_edits_out(
    only: set[str], skip: set[str], made: set[str], tmp_path: Path
) -> None:
    found = plan(tmp_path, only=frozenset(only), skip=frozenset(skip))
    assert found.verdict is Verdict.FIXABLE
    assert {edit for change in found.changes for edit in change.edits} == made
    assert not {one.edit for one in found.outcomes} & skip


@pytest.mark.parametrize(
    ("only", "skip"), [(set(), {WARM}), ({WORK}, set()), ({KERNEL, WORK}, set())]
)
def test_the_call_without_its_function_refuses_the_tree(
    only: set[str], skip: set[str], tmp_path: Path
) -> None:
    found = plan(tmp_path, only=frozenset(only), skip=frozenset(skip))
    assert found.verdict is Verdict.REFUSED
    assert found.changes == ()
    assert [one.edit for one in found.refusals] == [WORK]


@pytest.mark.parametrize("file", [BLOCK_TABLE, WARMUP, WORKER])
def test_one_refusal_leaves_no_change(file: str, tmp_path: Path) -> None:
    found = plan(tmp_path, BASE.edited(file, b"def f(:\n"))
    assert found.verdict is Verdict.REFUSED
    assert found.changes == ()


def test_a_refused_edit_that_is_skipped_refuses_nothing(tmp_path: Path) -> None:
    found = plan(tmp_path, BASE.edited(WORKER, b"def f(:\n"), skip=frozenset({WORK}))
    assert found.verdict is Verdict.FIXABLE
    assert {edit for change in found.changes for edit in change.edits} == {KERNEL, WARM}


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("00-kernel-class", Verdict.SUPERSEDED),
        ("02-native-op-only", Verdict.NOT_AFFECTED),
        ("14-no-block-table", Verdict.NOT_AFFECTED),
        ("03-fix-in-place", Verdict.ALREADY_FIXED),
        ("10-no-num-tokens", Verdict.REFUSED),
    ],
)
def test_a_tree_that_is_left_alone_has_no_change(
    name: str, verdict: Verdict, tmp_path: Path
) -> None:
    found = plan(tmp_path, fork(name).tree)
    assert found.verdict is verdict
    assert found.changes == ()


def test_the_changes_fix_the_tree(tmp_path: Path) -> None:
    first = plan(tmp_path / "first")
    second = plan(tmp_path / "second", BASE.changed({c.path: c.after for c in first.changes}))
    assert second.verdict is Verdict.ALREADY_FIXED
    assert second.changes == ()
    assert {one.status for one in second.outcomes} <= {Status.PRESENT, Status.NOT_NEEDED}


GOOD, BROKEN = b"a = 1\n", b"a = = 1\n"


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [(GOOD, BROKEN, True), (GOOD, GOOD, False), (BROKEN, BROKEN, False), (BROKEN, GOOD, False)],
)
def test_only_what_was_python_can_be_broken(before: bytes, after: bytes, broken: bool) -> None:
    assert breaks(FileChange("a.py", before, after, (KERNEL,))) is broken
