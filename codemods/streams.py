"""What the command prints, whoever reads it, and what comes of a reader that has gone."""

from __future__ import annotations

import io
import os
import sys

from codemods.report import NAME, printable


def prepare() -> None:
    """Streams that take every character, also where the caller closed them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # What is no text, as in a file's name, is written as JSON and Python escape it.
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print for whoever still reads: the exit code must not hang on it."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        give_stdout_up()


def give_stdout_up() -> None:
    """Its reader has gone or its disk is full: what Python flushes at exit must not fail again."""
    stream = sys.__stdout__
    if stream is not None and sys.stdout is stream:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(*lines: str) -> None:
    for line in lines:
        sys.stderr.write(f"{NAME}: {printable(line)}\n")


def colour(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return (
        bool(isatty and isatty())
        and not os.environ.get("NO_COLOR")
        and (os.environ.get("TERM") != "dumb")
    )


def progress(running: str | None) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{f'proving {running} …' if running else ''}")
        sys.stderr.flush()
