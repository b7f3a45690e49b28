"""A program is fed, read and ended, whatever it does with its streams."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from codemods.prove import processes
from codemods.prove.processes import Ended


def run(code: str, folder: Path, *, stdin: bytes = b"", timeout: float = 30) -> Ended:
    return processes.run(
        [sys.executable, "-c", code],
        folder=folder,
        environment={"SEEN": "yes"},
        timeout=timeout,
        stdin=stdin,
        answers=True,
    )


def test_streams_the_answer_the_folder_and_the_environment_are_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys; print(os.getcwd(), *sorted(os.environ)); "
        "sys.stderr.write(sys.stdin.read()); os.write(int(sys.argv[1]), b'answer')"
    )
    ended = run(code, tmp_path, stdin=b"question")
    assert (ended.status, ended.complaints, ended.answer) == (0, b"question", b"answer")
    words = ended.output.decode().split()
    assert words[0] == str(tmp_path)
    assert set(words[1:]) <= {"SEEN", "LC_CTYPE"}


def test_much_goes_in_and_comes_out_without_a_stop(tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    assert run(code, tmp_path, stdin=data).output == data


def test_input_that_is_never_read_is_no_error(tmp_path: Path) -> None:
    assert run("pass", tmp_path, stdin=bytes(1 << 20)).status == 0


def test_endless_output_is_kept_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_LARGEST_OUTPUT", 1_000)
    ended = run("while True: print('x' * 1000)", tmp_path, timeout=1)
    assert ended.status is None
    assert len(ended.output) == 1_000


def test_streams_that_a_child_holds_open_do_not_hold_the_tool_up(tmp_path: Path) -> None:
    start = time.monotonic()
    code = "import os, time; print('said', flush=True); os.fork() or time.sleep(60)"
    assert run(code, tmp_path).output == b"said\n"
    assert time.monotonic() - start < 20


def test_a_program_that_closes_its_streams_is_waited_for(tmp_path: Path) -> None:
    code = "import os, time; [os.close(n) for n in range(3)]; time.sleep(0.5); os._exit(7)"
    assert run(code, tmp_path).status == 7


def test_a_program_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        processes.run([str(tmp_path / "none")], folder=tmp_path, environment={}, timeout=1)


def test_other_children_of_the_tool_and_its_handlers_stay(tmp_path: Path) -> None:
    import subprocess

    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        run("pass", tmp_path)
        assert other.poll() is None
        assert handlers == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    finally:
        other.kill()
        other.wait()


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    run("pass", tmp_path)
    run("import time; time.sleep(9)", tmp_path, timeout=0.2)
    assert len(os.listdir("/dev/fd")) == before
