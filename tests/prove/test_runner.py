"""A proof that runs in a process of its own: what is missing here, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
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
        assert row.detail == f"{missing} is not installed"
        assert row.lacks_a_package


def test_a_proof_that_needs_no_triton_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "triton")
    assert proved(tmp_path)["order"].status is ProofStatus.PASS


@pytest.mark.parametrize("version", ["3.4.0", "3.5.1", "2.3.1"])
def test_an_old_triton_is_said_to_be_too_old(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "triton_version", lambda: version)
    message = runner.what_is_missing()
    assert message is not None
    assert message.startswith(f"triton {version} is too old")
    assert "pip install" in message


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
        (
            "raise ValueError('a\\nb')",
            ProofStatus.FAIL,
            "the tree's code cannot be used as this proof does: ValueError: a b",
        ),
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
    seen = "[os.environ.get(name) for name in ('ACME_TOKEN', 'CUDA_VISIBLE_DEVICES')]"
    row = run(tmp_path, f"import os; job = str({seen})", monkeypatch)
    assert row.detail == "[None, '']"


# What the tree's code may try


FORGED = """
    import json, os
    row = {{"name": "outer", "status": "pass", "detail": "forged", "figures": {{}}{token}}}
    forged = json.dumps(row)
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, forged.encode())
        except OSError:
            pass
    os._exit(0)
"""


@pytest.mark.parametrize("token", ["", ', "token": "00"'])
def test_an_answer_that_the_trees_code_writes_is_none(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = FORGED.format(token=token).strip()
    row = run(tmp_path, body, monkeypatch)
    assert row.status is ProofStatus.FAIL
    assert "answer" in row.detail


def test_a_second_answer_beside_the_first_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = FORGED.format(token="").replace("os._exit(0)", "pass").strip()
    assert run(tmp_path, body, monkeypatch).status is ProofStatus.FAIL


@pytest.mark.parametrize(
    "figures",
    ["[]", "{1: 2}", "{'a': None}", "{'a': []}", "{'a': float('nan')}", "{'a': True}", "'text'"],
)
def test_figures_of_another_type_are_no_row(
    figures: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "from codemods.prove.proof import Proof, ProofStatus; "
        f"return Proof('x', ProofStatus.PASS, 'x', {figures})"
    )
    row = run(tmp_path, body, monkeypatch)
    if figures == "{1: 2}":  # JSON has no other names than text
        assert row.figures == {"1": 2}
        return
    assert row.status is ProofStatus.FAIL
    assert "its answer is no row" in row.detail


def alive(marker: str) -> bool:
    """Whether a process runs that has the marker in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if marker.encode() in path.read_bytes():
                return True
    return False


LEAVES = """
    import subprocess
    twice = "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)"
    command = f"import os, time; {{twice}}; time.sleep(60)"
    subprocess.run([sys.executable, "-c", command, "{marker}"])
    {then}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
@pytest.mark.parametrize("then", ["pass", "import time; time.sleep(60)", "import os; os.abort()"])
def test_what_a_proof_starts_ends_with_it(
    then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"left-by-{os.urandom(8).hex()}"
    body = LEAVES.format(marker=marker, then=then).strip()
    run(tmp_path, body, monkeypatch, timeout=3)
    assert not alive(marker)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_a_proof_starts_ends_with_the_tool(number: signal.Signals, tmp_path: Path) -> None:
    marker = f"left-by-{os.urandom(8).hex()}"
    (tmp_path / "work").mkdir()
    body = LEAVES.format(
        marker=marker, then=f"open({str(tmp_path / 'begun')!r}, 'w'); import time; time.sleep(60)"
    ).strip()
    (tmp_path / "served.py").write_text(SERVES.format(body=body))
    call = (
        "import sys; from pathlib import Path; from codemods.prove import runner; "
        f"sys.path.insert(0, {str(tmp_path)!r}); "
        f"runner.run_worker('outer', 'served', '', Path({str(tmp_path / 'work')!r}), 60)"
    )
    tool = subprocess.Popen([sys.executable, "-c", call], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(marker)
    tool.send_signal(number)
    assert tool.wait(20) == -number
    assert not alive(marker)


def test_modules_of_the_current_folder_are_not_the_processs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("json", "numpy", "runpy", "libcst"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    row = run(tmp_path, "import libcst", monkeypatch)
    assert row.status is ProofStatus.PASS
    assert not (tmp_path / "ran").exists()
