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


OPTIONS = ("AddDoNotSpecialize", "--kernel", "_scale_kernel", "--param", "rows")


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
    rewrites(
        lambda data: tool(*OPTIONS, data=data),
        KERNEL.format(""),
        KERNEL.format('(do_not_specialize=["rows"])'),
    )
    assert "Transformed 1 files" in tool.said


NOT_ADDED = {
    "another-name": (KERNEL.format("").replace("_scale", "_other"), "there is no function"),
    "no-parameter": (
        KERNEL.format("").replace("rows, ", ""),
        "_scale_kernel has no parameter rows; its parameters are out_ptr",
    ),
    "constexpr": (
        KERNEL.format("").replace("rows", "rows: 'tl.constexpr | int'"),
        "rows of _scale_kernel is a constexpr: each of its values is a kernel of its own",
    ),
    "plain": (
        KERNEL.format("").replace("@triton.jit\n", ""),
        "_scale_kernel has no decorator\n",
    ),
    "numba": (
        KERNEL.format("(cache=True)").replace("triton", "numba"),
        "no decorator that the tool knows as Triton's jit: @numba.jit\n",
    ),
    "lazy": (
        KERNEL.format("").replace("import triton", "triton = lazy('triton')"),
        "no decorator that the tool knows as Triton's jit: @triton.jit",
    ),
    "assigned": (
        "import triton\n\n_scale_kernel = triton.jit(plain)\n",
        "_scale_kernel is assigned and not defined with a decorator",
    ),
    "form-feed": (
        KERNEL.format("") + "\n\nX = 1\n\x0cY = 2\n",
        "LibCST would change white space outside the edit",
    ),
    "white-space-at-the-end": (
        KERNEL.format("") + "\n   \n",
        "LibCST would change white space outside the edit",
    ),
    "lone-carriage-return-at-the-end": (
        KERNEL.format("") + "\r",
        "LibCST would change white space outside the edit",
    ),
}


@pytest.mark.parametrize(("text", "why"), NOT_ADDED.values(), ids=NOT_ADDED)
def test_a_file_that_is_left_alone_is_skipped_with_the_true_reason(
    tool: Tool, text: str, why: str
) -> None:
    leaves_alone(lambda data: tool(*OPTIONS, data=data), text.encode())
    assert why in tool.said
    assert "Skipped 1 files" in tool.said


SCOPES = {
    "function": """\
def make():
    import triton

    @triton.jit{}
    def _scale_kernel(rows, out_ptr):
        pass

    return _scale_kernel
""",
    "method": """\
import triton


class Scaling:
    def kernel(self):
        @triton.jit{}
        def _scale_kernel(rows, out_ptr):
            pass

        return _scale_kernel
""",
    "alias": """\
import triton

jit = triton.jit


@jit{}
def _scale_kernel(rows, out_ptr):
    pass
""",
    "runtime": """\
import triton


@triton.runtime.jit.jit{}
def _scale_kernel(rows, out_ptr):
    pass
""",
}


@pytest.mark.parametrize("text", SCOPES.values(), ids=SCOPES)
def test_a_kernel_is_found_wherever_it_is_defined(tool: Tool, text: str) -> None:
    after = text.format('(do_not_specialize=["rows"])')
    rewrites(lambda data: tool(*OPTIONS, data=data), text.format(""), after)


def test_a_definition_that_is_left_alone_beside_another_is_warned_of(tool: Tool) -> None:
    text = KERNEL + KERNEL.partition("triton\n")[2].replace("rows", "rows: tl.constexpr")
    tool(*OPTIONS, data=text.replace("{}", "").encode())
    assert "rows of _scale_kernel is a constexpr" in tool.said
    assert tool.file.read_text().count("do_not_specialize") == 1


def test_a_list_that_cannot_be_read_is_warned_of(tool: Tool) -> None:
    leaves_alone(lambda data: tool(*OPTIONS, data=data), KERNEL.format("(do_not_specialize=FIXED)"))
    assert "1 warnings were generated" in tool.said


def test_the_main_command_does_not_import_the_tool() -> None:
    code = "import sys, codemods.cli.main; sys.exit('libcst.codemod' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
