"""A proof that runs in a process of its own: what is missing here, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.prove import rows, runner
from codemods.prove.proof import Options, Proof, ProofStatus
from tests.recipes.slot_mapping.rewritten import plan, subject

NEEDS_TRITON = ("keys", "compile", "result", "state")


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    real = runner.importlib.util.find_spec
    monkeypatch.setattr(
        runner.importlib.util, "find_spec", lambda name: None if name == missing else real(name)
    )


def proved(root: Path) -> dict[str, Proof]:
    made = plan(root)
    return {row.name: row for _, row in rows.prove(made, subject(made).checkout, Options())}


@pytest.mark.parametrize("missing", ["torch", "triton", "numpy"])
def test_a_missing_package_skips_the_proofs_that_need_it(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, missing)
    found = proved(tmp_path)
    assert set(NEEDS_TRITON) <= set(found)
    for row in (found[name] for name in NEEDS_TRITON):
        assert row.status is ProofStatus.SKIPPED
        assert row.detail == f"{missing} is not installed: pip install 'vllm-codemods[verify]'"


def test_a_proof_that_needs_no_triton_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "triton")
    assert proved(tmp_path)["order"].status is ProofStatus.PASS


@pytest.mark.parametrize("version", ["3.4.0", "3.5.1", "2.3.1"])
def test_an_old_triton_is_said_to_be_too_old(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "triton_version", lambda: version)
    told = runner.what_is_missing()
    assert told is not None
    assert told.startswith(f"triton {version} is too old")
    assert "pip install" in told


@pytest.mark.parametrize("version", ["3.6.0", "3.10.0", "4.0.0+git1"])
def test_a_new_enough_triton_lacks_nothing(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "triton_version", lambda: version)
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: name)
    assert runner.what_is_missing() is None


SERVES = """
import sys
from codemods.prove.job import serve
from codemods.prove.proof import passed

def prove(job):
    {body}
    return passed("inner", job)

serve("inner", prove)
"""


def run(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch, timeout: float = 60) -> Proof:
    (folder / "served.py").write_text(SERVES.format(body=body))
    monkeypatch.syspath_prepend(str(folder))
    work = folder / "work"
    work.mkdir()
    return runner.run_worker("outer", "served", "the job", work, timeout)


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ("pass", ProofStatus.PASS, "the job"),
        ("print('noise')", ProofStatus.PASS, "the job"),
        ("raise ValueError('a\\nb')", ProofStatus.FAIL, "the tree's code raised ValueError at "),
        ("sys.exit(3)", ProofStatus.FAIL, "its process ended with status 3"),
        ("import os; os._exit(4)", ProofStatus.FAIL, "its process ended with status 4"),
        ("import os; os.abort()", ProofStatus.FAIL, "its process ended with status -6"),
    ],
)
def test_whatever_the_process_does_a_row_comes_back(
    body: str, status: ProofStatus, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = run(tmp_path, body, monkeypatch)
    assert (row.name, row.status) == ("outer", status)
    assert row.detail.startswith(detail)
    assert "\n" not in row.detail


def test_a_process_that_lacks_something_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "from codemods.prove.job import CannotRunError; raise CannotRunError('no such thing')"
    row = run(tmp_path, body, monkeypatch)
    assert (row.status, row.detail) == (ProofStatus.SKIPPED, "no such thing")


def test_a_process_that_takes_too_long_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = run(tmp_path, "import time; time.sleep(60)", monkeypatch, timeout=0.5)
    assert (row.status, row.detail) == (
        ProofStatus.FAIL,
        "did not end within 0.5 s and was stopped",
    )


def test_the_users_own_environment_does_not_reach_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    body = (
        'import os; job = f\'{os.environ.get("ACME_TOKEN")} {os.environ["CUDA_VISIBLE_DEVICES"]}.\''
    )
    assert run(tmp_path, body, monkeypatch).detail == "None ."
