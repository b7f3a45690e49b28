"""The composite action: its shell steps, run as GitHub runs them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from consumers import REPOSITORY, Case, Ran, commit_all, example, need, run, run_well
from traps import Traps

yaml = pytest.importorskip("yaml", reason="PyYAML, which pre-commit brings, is not installed")


@dataclass(frozen=True)
class Job:
    """What a step left behind."""

    ran: Ran
    summary: str
    outputs: str

    @property
    def annotations(self) -> list[str]:
        return [line for line in self.ran.output.splitlines() if line.startswith("::error file")]


def action() -> Any:
    return yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))


def run_step(name: str, workspace: Path, temporary: Path, tree: str, **variables: str) -> Ran:
    """Run one step with the input `tree`, as GitHub runs `shell: bash`."""
    need("bash")
    (step,) = (step for step in action()["runs"]["steps"] if step["name"] == name)
    inputs = {
        name: value.replace("${{ inputs.tree }}", tree)
        for name, value in step.get("env", {}).items()
    }
    (temporary / "step.sh").write_text(step["run"])
    return run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(temporary / "step.sh")],
        workspace,
        **inputs,
        **variables,
        RUNNER_TEMP=str(temporary),
        GITHUB_WORKSPACE=str(workspace),
        GITHUB_ACTION_PATH=str(REPOSITORY),
        GITHUB_STEP_SUMMARY=str(temporary / "summary"),
        GITHUB_OUTPUT=str(temporary / "outputs"),
    )


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The runner's own folder, with this checkout where the step "Install" puts the tool."""
    python = tmp_path / "temporary/vllm-codemods/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path / "temporary"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def check(workspace: Path, temporary: Path, tree: str, **variables: str) -> Job:
    ran = run_step("Check", workspace, temporary, tree, **variables)
    return Job(ran, (temporary / "summary").read_text(), (temporary / "outputs").read_text())


def test_a_tree_that_lost_the_fix_fails_and_shows_table_diff_and_lines(
    small: Case, workspace: Path, temporary: Path
) -> None:
    small.copy(workspace / "fork")
    job = check(workspace, temporary, "fork")
    assert job.ran.status == 1
    assert "::error::The tree would change: run vllm-codemods apply" in job.ran.output
    assert job.summary.startswith("## Slot-mapping warm-up: fixable\n")
    assert "\n```diff\n--- a/vllm/v1/worker/" in job.summary
    assert job.outputs == "status=1\n"
    report = json.loads(run(f"vllm-codemods check {small.root} --json", workspace).output)
    (recipe,) = report.get("recipes", [report])
    wanted = {
        edit["edit"]: (f"fork/{edit['file']}", str(edit["line"]), edit["detail"])
        for edit in recipe["edits"]
        if edit["status"] == "edit"
    }
    assert set(wanted) == {"kernel", "warmup", "worker"}
    assert dict(map(parsed, job.annotations)) == wanted


def parsed(annotation: str) -> tuple[str, tuple[str, str, str]]:
    """Edit, file, line and message of an annotation, as the runner reads it."""
    found = re.fullmatch(
        r"::error file=([^,:]*),line=(\d+),title=[\w-]+ ([\w-]+)%3A [\w-]+::(.*)", annotation
    )
    assert found is not None, annotation
    file, line, edit, message = found.groups()
    return edit, (file, line, message.replace("%25", "%"))


def test_files_of_annotations_start_at_the_repository_that_holds_the_tree(
    small: Case, workspace: Path, temporary: Path
) -> None:
    small.copy(workspace / "fork/third_party/vllm")
    commit_all(workspace / "fork")
    job = check(workspace, temporary, "fork/third_party")
    files = {file for _, (file, _, _) in map(parsed, job.annotations)}
    assert "third_party/vllm/vllm/v1/worker/block_table.py" in files


def test_a_fixed_tree_passes_and_shows_no_diff(
    small: Case, workspace: Path, temporary: Path
) -> None:
    small.copy_fixed(workspace / "fork")
    job = check(workspace, temporary, "fork")
    assert job.ran.status == 0, job.ran.output
    assert "::error" not in job.ran.output
    assert "already-fixed" in job.summary
    assert "```diff" not in job.summary
    assert job.outputs == "status=0\n"


def test_a_refused_tree_fails_and_says_where(small: Case, workspace: Path, temporary: Path) -> None:
    small.copy(workspace / "fork")
    (workspace / "fork/vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    job = check(workspace, temporary, "fork")
    assert job.ran.status == 3
    assert "::error::The tool refused the tree" in job.ran.output
    assert "::error file=fork/vllm/v1/worker/gpu_worker.py," in job.ran.output
    assert "```diff" not in job.summary
    assert job.outputs == "status=3\n"


@pytest.mark.parametrize(
    "tree", ["nothing here", "-x", "$(touch ran)", "';touch ran;'", "`touch ran`"]
)
def test_a_folder_without_vllm_fails_in_one_line_and_is_no_text_of_a_shell(
    workspace: Path, temporary: Path, tree: str
) -> None:
    (workspace / tree).mkdir()
    job = check(workspace, temporary, tree)
    assert job.ran.status == 2
    assert "Traceback" not in job.ran.output
    assert job.outputs == "status=2\n"
    assert not list(workspace.parent.rglob("ran"))


@pytest.mark.parametrize("name", ["a\n::error::planted", "a ##[error]planted", "%0A::error::x"])
def test_a_name_in_the_tree_gives_the_runner_no_command(
    small: Case, workspace: Path, temporary: Path, name: str
) -> None:
    small.copy(workspace / "fork" / name)
    (workspace / "fork" / name / "vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    job = check(workspace, temporary, "fork")
    assert job.ran.status == 3
    commands = heard(job.ran.output)
    assert commands
    ours = "::error file=.*,line=.*,title=.*::.+|::error::The tool refused.*"
    assert all(re.fullmatch(ours, line) for line in commands)


def heard(log: str) -> list[str]:
    """The lines that the runner takes for commands."""
    commands = []
    token = None
    for line in log.splitlines():
        if token is not None:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.lstrip().startswith("::") or "##[" in line:
            commands.append(line)
    assert token is None
    return commands


def test_no_step_imports_a_module_of_the_workspace(
    small: Case, workspace: Path, temporary: Path, tmp_path: Path
) -> None:
    small.copy(workspace / "fork")
    traps = Traps(workspace, tmp_path / "marker")
    traps.set()
    traps.assert_they_work()
    job = check(workspace, temporary, "fork", PYTHONPATH=f".:{workspace}")
    assert job.ran.status == 1
    assert len(job.annotations) == 3
    traps.assert_untouched()


@pytest.mark.network
def test_the_tool_is_installed_from_the_action_and_runs_without_the_checkout(
    small: Case, index: None, workspace: Path, tmp_path: Path
) -> None:
    tree = small.copy(workspace / "fork")
    traps = Traps(workspace, tmp_path / "marker")
    traps.set()
    (tmp_path / "empty").mkdir()
    installed = run_step(
        "Install", workspace, tmp_path / "empty", "fork", PYTHONPATH=f".:{workspace}"
    )
    assert installed.status == 0, installed.output
    job = check(workspace, tmp_path / "empty", "fork", PYTHONPATH=f".:{workspace}")
    assert job.ran.status == 1, job.ran.output
    assert len(job.annotations) == 3
    traps.assert_untouched()
    commit_all(tree)
    program = tmp_path / "empty/vllm-codemods/bin/vllm-codemods"
    run_well(f"{program} diff . --format git -o ../fix.mbox && git am ../fix.mbox", tree)
    small.assert_fixed(tree)


def test_every_step_names_its_shell_and_no_expression_is_in_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]


def test_every_python_is_isolated() -> None:
    for step in action()["runs"]["steps"]:
        calls = re.findall(r"(?:\$python|\S*/?python3?) (?=-)(\S+)", step["run"])
        assert calls
        assert set(calls) == {"-I"}


def test_the_workflow_on_the_page_gives_inputs_that_the_action_has() -> None:
    workflow = yaml.safe_load(example("workflow"))
    steps = workflow["jobs"]["check"]["steps"]
    clones = {step["with"]["path"] for step in steps if step["uses"].startswith("actions/checkout")}
    (step,) = (step for step in steps if step["uses"].startswith("./"))
    assert step["uses"].removeprefix("./") in clones
    assert step["with"]["tree"] in clones
    assert set(step["with"]) <= set(action()["inputs"])
