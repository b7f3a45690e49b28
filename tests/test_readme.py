"""The README's commands run as they are printed, and its links and names lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.engine.plan import Reason, Verdict
from codemods.prove.rows import OF_EVERY_PLAN
from codemods.recipes.slot_mapping.proofs import PROOFS
from tests.forks import trees
from tests.repositories import git

EXIT_CODES = {"check": 1}  # it would change the fork

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text("utf-8")
# Commands that another test or the run of the tests themselves shows.
ELSEWHERE = {
    "make demo": "it makes a virtual environment; tests/releases shows the patch of 0.21.0",
    "make test": "it is what runs this",
    "vllm-codemods verify path/to/fork": "it takes long: proofs/test_release.py does it",
}
# Paths that look like this project's: of a vLLM tree, or a pattern.
OF_A_TREE = {"tests/v1/worker/test_gpu_model_runner.py", "codemods/X/y.py", "tests/X/test_y.py"}
KERNEL = "import triton\n\n\n@triton.jit\ndef my_kernel(num_tokens):\n    pass\n"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and line[0] != "#"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fork under version control, with the names that the README gives things."""
    fork = tmp_path / "path" / "to" / "fork"
    trees.fork("00-monitor-in-triton-utils").tree.write_to(fork)
    git(fork, "init", "-q", "-b", "main")
    git(fork, "add", ".")
    git(fork, "commit", "-q", "-m", "A fork")
    git(fork, "branch", "release/1.0")
    (fork / "my_module.py").write_text(KERNEL)
    return tmp_path


@pytest.mark.parametrize("command", [one for one in commands() if one not in ELSEWHERE])
def test_a_command_runs_as_it_is_printed(command: str, folder: Path) -> None:
    words = shlex.split(command)
    own = Path(sys.executable).parent
    path = f"{own}{os.pathsep}{os.environ['PATH']}"
    in_the_tree = "." in words or "my_module.py" in words
    ran = subprocess.run(
        [str(own / "python") if words[0] == "python" else words[0], *words[1:]],
        cwd=folder / "path/to/fork" if in_the_tree else folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == EXIT_CODES.get(words[1], 0), ran.stderr
    assert "Traceback" not in ran.stderr


def test_what_is_shown_elsewhere_is_still_in_the_readme() -> None:
    assert ELSEWHERE.keys() <= {*commands()}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_link_leads_to_a_file(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    found = [one for one in re.findall(r"\]\(([^)#]+)", text) if "://" not in one]
    assert [one for one in found if not (ROOT / one).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_file_of_this_project_that_a_page_names_exists(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.S)
    own = "codemods|tests|fixtures|docs|tools|benchmarks"
    named = set(re.findall(rf"`((?:{own})/[\w/.-]*)`", text)) - OF_A_TREE
    assert named
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []


def test_every_verdict_reason_and_proof_is_explained() -> None:
    rows = set(re.findall(r"^\| `([^`]+)` \|", TEXT, re.M))
    assert {reason.value for reason in Reason} <= rows
    assert {verdict.value for verdict in Verdict} - {"fixed"} <= rows
    proofs = {row.name for row in (*OF_EVERY_PLAN, *PROOFS) if row.asked_by != "gpu"}
    assert proofs <= rows


def test_the_measured_times_are_those_of_the_page() -> None:
    (row,) = re.findall(
        r"^\| Triton \| 0\.21\.0 .*", (ROOT / "docs/validation.md").read_text(), re.M
    )
    before, after = (cell.split()[0] for cell in row.split(" | ")[3:5])
    assert f"vLLM 0.21.0 took {before} ms before and {after} ms after" in TEXT


def test_every_option_that_it_names_is_one() -> None:
    helped = " ".join(
        subprocess.run(
            [sys.executable, "-m", "codemods", *verb, "--help"],
            capture_output=True, text=True, check=True, cwd=ROOT,
        ).stdout
        for verb in ((), ("check",), ("diff",), ("apply",), ("verify",))
    )  # fmt: skip
    ours = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    others = {"--no-format", "--kernel", "--param"}  # LibCST's
    assert {one for one in ours if one not in helped} - others == set()
