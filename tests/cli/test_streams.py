"""What is printed for whom, and what a reader that has gone changes."""

from __future__ import annotations

import io
import sys

import pytest

from codemods.cli import streams


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
