"""A proof that cannot run here says what is missing and how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.prove import OPTIONAL, PROOFS, Options, ProofStatus, proofs, prove
from codemods.prove import runner as isolated
from codemods.prove.triton_binder import Binder, CannotRunError, intercepted

from tests.prove.rewritten import plan

NEEDS_TRITON = ("keys", "compile", "result", "state")


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    real = isolated.importlib.util.find_spec
    monkeypatch.setattr(
        isolated.importlib.util, "find_spec", lambda name: None if name == missing else real(name)
    )


@pytest.mark.parametrize("missing", ["torch", "triton", "numpy"])
def test_a_missing_package_skips_the_proofs_that_need_it(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, missing)
    rows = {row.name: row for row in prove(plan(tmp_path), Options()) if row.name in NEEDS_TRITON}
    assert set(rows) == set(NEEDS_TRITON)
    for row in rows.values():
        assert row.status is ProofStatus.SKIPPED
        assert row.detail == f"{missing} is not installed: pip install 'vllm-codemods[verify]'"


def test_a_proof_that_needs_no_triton_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "triton")
    rows = {row.name: row.status for row in prove(plan(tmp_path), Options())}
    assert rows["order"] is ProofStatus.PASS


@pytest.mark.parametrize("version", ["3.4.0", "3.5.1", "2.3.1"])
def test_an_old_triton_skips_the_row_and_says_why(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "triton_version", lambda: version)
    row = isolated.run_worker("keys", "keys", plan(tmp_path), Options())
    assert row.status is ProofStatus.SKIPPED
    assert row.detail.startswith(f"triton {version} is too old")
    assert "pip install" in row.detail


def test_an_interface_of_tritons_that_has_gone_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = pytest.importorskip("triton.runtime.jit")
    monkeypatch.delattr(jit, "create_function_from_signature")
    with pytest.raises(CannotRunError, match="no longer has triton") as e:
        Binder("cuda:90")
    assert "\n" not in str(e.value)


def test_launches_that_cannot_be_intercepted_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = pytest.importorskip("triton.runtime.jit")
    monkeypatch.delattr(jit, "JITFunction")
    with pytest.raises(CannotRunError, match="JITFunction"), intercepted(print):
        pass


@pytest.mark.parametrize("target", ["cuda", "cuda:sm_90", "hip:90", "", "metal:1"])
def test_a_target_that_is_none_is_told(target: str) -> None:
    pytest.importorskip("triton")
    with pytest.raises(CannotRunError, match="no such target"):
        Binder(target)


def test_a_tree_without_a_block_table_is_skipped(tmp_path: Path) -> None:
    made = plan(tmp_path)
    gone = type(made)(made.tree, made.outcomes, (), made.verdict)
    (tmp_path / "vllm/v1/worker/block_table.py").unlink()
    row = isolated.run_worker("keys", "keys", gone, Options())
    assert row.status is ProofStatus.SKIPPED
    assert row.detail == "the tree has no vllm/v1/worker/block_table.py"


def test_rows_come_in_the_order_of_their_names() -> None:
    assert proofs(Options()) == tuple(name for name in PROOFS if name not in OPTIONAL)
    assert proofs(Options(mypy=True, gpu=True)) == PROOFS
