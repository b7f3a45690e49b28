"""The composite action: its shell steps, run as GitHub runs them."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from consumers import FIXTURE, REPOSITORY, Ran, need, recipe, run, run_well, with_command

yaml = pytest.importorskip("yaml", reason="PyYAML, which pre-commit brings, is not installed")


@dataclass(frozen=True)
class Job:
    """What a step left behind."""

    ran: Ran
    summary: str
    outputs: str


def action() -> Any:
    return yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))


def check(tree: str, folder: Path) -> Job:
    """Run the step "Check" with the input `tree`, in `folder`."""
    need("bash")
    (step,) = (step for step in action()["runs"]["steps"] if step["name"] == "Check")
    inputs = {
        name: value.replace("${{ inputs.tree }}", tree) for name, value in step["env"].items()
    }
    (folder / "step.sh").write_text(step["run"])
    # How GitHub runs `shell: bash`.
    ran = run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(folder / "step.sh")],
        folder,
        **with_command(folder, **inputs),
        GITHUB_STEP_SUMMARY=str(folder / "summary"),
        GITHUB_OUTPUT=str(folder / "outputs"),
    )
    return Job(ran, (folder / "summary").read_text(), (folder / "outputs").read_text())


def test_a_tree_that_lost_the_fix_fails_and_shows_table_and_diff(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "fork")
    job = check("fork", tmp_path)
    assert job.ran.status == 1
    assert "::error::The slot-mapping warm-up is missing" in job.ran.output
    assert job.summary.startswith("## Slot-mapping warm-up: fixable\n")
    assert "\n```diff\n--- a/vllm/v1/worker/" in job.summary
    assert job.outputs == "status=1\n"


def test_a_fixed_tree_passes_and_shows_no_diff(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "fork")
    run_well("vllm-codemods apply fork", tmp_path, **with_command(tmp_path))
    job = check("fork", tmp_path)
    assert job.ran.status == 0, job.ran.output
    assert "::error::" not in job.ran.output
    assert "already-fixed" in job.summary
    assert "```diff" not in job.summary
    assert job.outputs == "status=0\n"


def test_a_refused_tree_fails_and_says_so(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "fork")
    (tmp_path / "fork/vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    job = check("fork", tmp_path)
    assert job.ran.status == 3
    assert "::error::The tool refused the tree" in job.ran.output
    assert "```diff" not in job.summary
    assert job.outputs == "status=3\n"


@pytest.mark.parametrize("tree", ["nothing here", "-x", "$(touch ran)"])
def test_a_folder_without_vllm_fails_in_one_line(tmp_path: Path, tree: str) -> None:
    (tmp_path / tree).mkdir()
    job = check(tree, tmp_path)
    assert job.ran.status == 2
    assert "Traceback" not in job.ran.output
    assert job.outputs == "status=2\n"
    assert not (tmp_path / "ran").exists()


def test_every_step_names_its_shell_and_no_expression_stands_in_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]


def test_the_workflow_on_the_page_gives_inputs_that_the_action_has() -> None:
    workflow = yaml.safe_load(recipe("workflow"))
    (step,) = (
        step
        for step in workflow["jobs"]["check"]["steps"]
        if re.search("vllm-codemods@", step["uses"])
    )
    assert set(step["with"]) <= set(action()["inputs"])


def test_the_hooks_that_the_page_names_are_there() -> None:
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    page = (REPOSITORY / "docs/packaging.md").read_text(encoding="utf-8")
    assert {hook["id"] for hook in hooks} == set(re.findall(r"vllm-slot-mapping-\w+", page))
