"""Syntax: what is written is Python, a second rewrite does nothing, nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import FileChange, Plan
from codemods.engine.planning import make_plan
from codemods.prove import syntax
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.prove.subject import Subject
from tests.forks import trees


def real(root: Path, fork: str = "00-monitor-in-triton-utils") -> Plan:
    tree = trees.fork(fork).tree
    tree.write_to(root)
    return make_plan(Checkout.find(root, tree.package), registry.chosen(()))


def tampered(plan: Plan, end: str, old: bytes, new: bytes) -> Plan:
    changes = tuple(
        replace(change, after=change.after.replace(old, new))
        if change.path.endswith(end)
        else change
        for change in plan.changes
    )
    assert changes != plan.changes
    return changed(plan, changes)


def changed(plan: Plan, changes: tuple[FileChange, ...]) -> Plan:
    (one,) = plan.recipes
    return replace(plan, recipes=(replace(one, changes=changes),))


def proved(plan: Plan) -> Proof:
    return syntax.prove(Subject(plan, Checkout(plan.tree.root, plan.tree.package)), Options())


def test_a_right_rewrite_is_proved(tmp_path: Path) -> None:
    row = proved(real(tmp_path))
    assert row.status is ProofStatus.PASS, row
    assert (row.figures["files"], row.figures["lines_removed"]) == (3, 2)


def test_a_tree_with_nothing_to_change_is_taken_as_it_is(tmp_path: Path) -> None:
    made = real(tmp_path)
    for change in made.changes:
        (tmp_path / change.path).write_bytes(change.after)
    row = proved(make_plan(Checkout.find(tmp_path), registry.chosen(())))
    assert (row.status, row.figures["files"]) == (ProofStatus.PASS, 0)


def test_a_file_that_does_not_compile_fails(tmp_path: Path) -> None:
    row = proved(tampered(real(tmp_path), "warmup.py", b"    finally:", b"    finally"))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("vllm/v1/worker/gpu/warmup.py does not compile after the rewrite")


def test_a_rewrite_that_is_not_finished_fails(tmp_path: Path) -> None:
    call = b"            warmup_v1_slot_mapping_kernel(self.model_runner)"
    row = proved(tampered(real(tmp_path), "gpu_worker.py", call, b"            pass"))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("a second rewrite ")


def test_a_change_that_no_edit_names_fails(tmp_path: Path) -> None:
    made = real(tmp_path)
    (one,) = made.recipes
    outcomes = tuple(o for o in one.outcomes if o.edit != "kernel")
    row = proved(replace(made, recipes=(replace(one, outcomes=outcomes),)))
    assert row.status is ProofStatus.FAIL
    assert row.detail.endswith("changes for the edit kernel, which is not to be made")


def test_an_edit_that_changes_nothing_fails(tmp_path: Path) -> None:
    made = real(tmp_path)
    row = proved(changed(made, made.changes[1:]))
    assert row.status is ProofStatus.FAIL
    assert row.detail.endswith("which stays as it was")


def test_a_tree_that_changed_since_the_plan_fails(tmp_path: Path) -> None:
    made = real(tmp_path)
    (tmp_path / made.changes[0].path).write_bytes(b"# another\n")
    row = proved(made)
    assert row.status is ProofStatus.FAIL
    assert row.detail.endswith("is no longer what the plan was made from")


def test_carriage_returns_and_another_package_name_are_no_hindrance(tmp_path: Path) -> None:
    row = proved(real(tmp_path, "20-renamed-package-with-crlf"))
    assert row.status is ProofStatus.PASS, row
