"""What is printed for whom, and what a reader that has gone changes."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

import pytest

from codemods.cli import streams, verbs
from codemods.cli.main import main
from tests.forks.trees import fork


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_has_gone_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    streams.write("text\n")


def test_lines_are_said_with_the_commands_name_and_stay_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    streams.log("one", "a\nb")
    assert capsys.readouterr().err.splitlines() == [
        "vllm-codemods: one",
        "vllm-codemods: a\\nb",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (None, {}, False),
    ],
)
def test_only_a_terminal_is_coloured(
    stream: object, environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert streams.colour(stream) is coloured


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (Terminal(), ["vllm-codemods: a/long/place/in/vllm.py:120:", "  worker refused: no place"]),
        (io.StringIO(), ["vllm-codemods: a/long/place/in/vllm.py:120: worker refused: no place"]),
    ],
)
def test_a_line_is_wrapped_on_a_terminal_alone(
    stream: io.StringIO, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "49")
    monkeypatch.setattr(sys, "stderr", stream)
    streams.log("a/long/place/in/vllm.py:120: worker refused: no place")
    assert stream.getvalue().splitlines() == lines


@pytest.mark.parametrize("said", ["", "0", "-7", "wide", "61"])
def test_the_columns_are_those_that_shutil_finds(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", said)
    assert streams.columns() == shutil.get_terminal_size().columns


def test_a_closed_stdout_has_the_columns_of_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stdout__", None)
    assert streams.columns() == 80


@pytest.mark.parametrize("verb", ["check", "diff", "apply"])
@pytest.mark.parametrize("out", [Terminal, io.StringIO])
@pytest.mark.parametrize("err", [Terminal, io.StringIO])
def test_a_refusal_stands_once_before_a_reader(
    verb: str,
    out: type[io.StringIO],
    err: type[io.StringIO],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = fork("00-no-monitor").tree.write_to(tmp_path)
    (broken / "vllm/v1/worker/gpu_worker.py").write_text("def f(:\n")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stdout", out())
    monkeypatch.setattr(sys, "stderr", err())
    assert main([verb, str(broken)]) == 3
    said = [stream.getvalue().count("syntax error") for stream in (sys.stdout, sys.stderr)]  # type: ignore[attr-defined]
    both = verb != "diff" and not (out is Terminal and err is Terminal)
    assert said == [1 if both else 0, 1]


def test_progress_is_for_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        streams.progress("keys")
        assert ("keys" in stream.getvalue()) is shown


def test_closed_streams_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    streams.prepare()
    streams.write("nowhere\n")
    assert sys.stdout is not None


# As a process, since what is tested is what is behind Python's streams


def run(command: str, *, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `tool` is the command."""
    line = f'tool() {{ "{sys.executable}" -P -m codemods "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fork("00-no-monitor").tree.write_to(tmp_path_factory.mktemp("tree"))


@cache
def with_stderr(arguments: str) -> tuple[list[str], bytes]:
    """The lines on stdout, without the exit code's, and the patch where there is one."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.patch")
        ran = run(f"tool {arguments.format(out=out)}")
        return ran.stdout.splitlines(), out.read_bytes() if out.exists() else b""


STDERR = ("2>/dev/full", "2>&-", "2> >(exec true)", "2>/dev/null")


@pytest.mark.parametrize("stderr", STDERR)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("check /nonexistent", 2),
        ("check --no-such-option", 2),
        ("check {tree}", 1),
        ("diff {tree}", 0),
        ("diff {tree} --require superseded", 1),
        ("diff {tree} -o {out}", 0),
    ],
)
def test_stderr_changes_neither_the_exit_code_nor_the_result(
    arguments: str, code: int, stderr: str, tree: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.patch"
    arguments = arguments.replace("{tree}", str(tree))
    ran = run(f"tool {arguments.format(out=out)} {stderr}; echo $?")
    assert ran.stdout.splitlines()[-1:] == [str(code)]
    patch = out.read_bytes() if out.exists() else b""
    assert (ran.stdout.splitlines()[:-1], patch) == with_stderr(arguments)


@pytest.mark.parametrize("verb", ["check", "check --json", "diff", "diff --json", "verify"])
def test_a_full_stdout_is_no_success(verb: str, tree: Path) -> None:
    ran = run(f"tool {verb} {tree} >/dev/full")
    assert ran.returncode == 2
    assert "No space left" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(("verb", "code"), [("check", 1), ("check --json", 1), ("diff", 0)])
def test_a_reader_that_has_had_enough_changes_no_exit_code(
    verb: str, code: int, tree: Path
) -> None:
    ran = run(f"tool {verb} {tree} > >(exec true); echo $? >&2")
    assert ran.stderr.splitlines()[-1] == str(code)
    assert "Traceback" not in ran.stderr


def test_verify_proves_on_without_a_reader(tree: Path, tmp_path: Path) -> None:
    # Rows that need Triton come last, and a Triton without a version has them skipped.
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    path = f'PYTHONPATH="$PYTHONPATH:{tmp_path}"'
    ran = run(f"{path} tool verify --strict {tree} > >(exec true); echo $? >&2")
    assert ran.stderr.splitlines()[-1] == "1"
    ran = run(f"{path} tool verify {tree} > >(exec true); echo $? >&2")
    assert ran.stderr.splitlines()[-1] == "0"


def test_a_closed_stream_never_gets_a_file_of_the_tree(tree: Path) -> None:
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        assert run(f"tool check {tree} {closed}").returncode == 1


# The machine's limits


@pytest.mark.parametrize("kilobytes", [60_000, 100_000, 200_000, 400_000, 700_000, 1_500_000])
def test_without_memory_no_exit_code_means_something_else(kilobytes: int, tree: Path) -> None:
    ran = run(f"ulimit -v {kilobytes}; tool check {tree}")
    # Where Python itself cannot start, or the native parser is refused memory, a signal or
    # Python's own message ends the process.
    begun = "vllm-codemods: " in ran.stderr or "fixable" in ran.stdout
    assert "codemods" not in ran.stderr or "Traceback" not in ran.stderr
    if begun:
        assert ran.returncode == (1 if "fixable" in ran.stdout else 2)


def test_without_threads_there_is_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    assert main(["check", str(tree)]) == 2
    assert len(errors.getvalue().splitlines()) == 1
    assert "can't start new thread" in errors.getvalue()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("a\nb"), KeyError("x")])
def test_what_nothing_foresaw_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: object) -> int:
        raise error

    monkeypatch.setattr(verbs, "VERBS", {**verbs.VERBS, "check": fails})
    assert main(["check"]) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert type(error).__name__ in captured.err


# Modules of the current folder


@pytest.mark.parametrize("name", ["libcst", "argparse", "contextlib", "json", "difflib"])
def test_a_module_of_the_current_folder_is_not_run(name: str, tree: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    commands = [[str(Path(sys.executable).parent / "vllm-codemods")]]
    if name != "contextlib":  # Python itself imports it for -m, before anything of ours runs
        commands.append([sys.executable, "-m", "codemods"])
    for command in commands:
        done = subprocess.run(
            [*command, "check", str(tree)], cwd=here, capture_output=True, check=False
        )
        assert done.returncode == 1, done.stderr
    assert not (tmp_path / "ran").exists()
