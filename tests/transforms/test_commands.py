"""A transformer run by LibCST's own tool."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from libcst.tool import main

from tests.rewriting import leaves_alone, rewrites

KERNEL = """\
import triton


@triton.jit{}
def _scale_kernel(rows, out_ptr):
    pass
"""


class Tool:
    """Runs a command on a file of its own, and keeps what the tool said last."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "file.py"
        self.said = ""

    def __call__(self, command: str, *options: str, data: bytes) -> bytes:
        self.file.write_bytes(data)
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            main("libcst.tool", ["codemod", *self.arguments(command, *options)])
        self.said = said.getvalue()
        return self.file.read_bytes()

    def arguments(self, command: str, *options: str) -> list[str]:
        name = f"codemods.transforms.commands.{command}"
        return ["-x", name, *options, "--no-format", "-j", "1", str(self.file)]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.chdir(tmp_path)
    return Tool(tmp_path)


def in_a_process(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "libcst.tool", "codemod", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_tool_runs_a_command_by_its_full_name(tool: Tool) -> None:
    tool.file.write_text(KERNEL.format(""))
    options = ("--kernel", "_scale_kernel", "--param", "rows")
    in_a_process(tool.file.parent, *tool.arguments("AddDoNotSpecialize", *options))
    assert tool.file.read_text() == KERNEL.format('(do_not_specialize=["rows"])')


def test_a_project_may_name_the_folder_once_for_all(tool: Tool) -> None:
    tool.file.with_name(".libcst.codemod.yaml").write_text("modules: [codemods.transforms]\n")
    tool.file.write_text(KERNEL.format(""))
    options = ("--kernel", "_scale_kernel", "--param", "rows", "--no-format", tool.file.name)
    in_a_process(tool.file.parent, "commands.AddDoNotSpecialize", *options)
    assert tool.file.read_text() == KERNEL.format('(do_not_specialize=["rows"])')


def test_a_parameter_is_listed(tool: Tool) -> None:
    options = ("AddDoNotSpecialize", "--kernel", "_scale_kernel", "--param", "rows")
    rewrites(
        lambda data: tool(*options, data=data),
        KERNEL.format(""),
        KERNEL.format('(do_not_specialize=["rows"])'),
    )
    assert "Transformed 1 files" in tool.said


@pytest.mark.parametrize(
    "options",
    [
        ("--kernel", "_scale_kernel", "--param", "columns"),
        ("--kernel", "_other_kernel", "--param", "rows"),
    ],
)
def test_a_parameter_that_is_not_there_is_said_to_be_missing(
    tool: Tool, options: tuple[str, ...]
) -> None:
    leaves_alone(lambda data: tool("AddDoNotSpecialize", *options, data=data), KERNEL.format(""))
    assert f"no Triton kernel {options[1]} with a parameter {options[3]}" in tool.said
    assert "Skipped 1 files" in tool.said


def test_a_list_that_cannot_be_read_is_warned_of(tool: Tool) -> None:
    options = ("AddDoNotSpecialize", "--kernel", "_scale_kernel", "--param", "rows")
    leaves_alone(lambda data: tool(*options, data=data), KERNEL.format("(do_not_specialize=FIXED)"))
    assert "1 warnings were generated" in tool.said


def test_the_main_command_does_not_import_the_tool() -> None:
    code = "import sys, codemods.cli.main; sys.exit('libcst.codemod' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
