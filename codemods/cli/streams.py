"""What the command prints, whoever reads it, and what comes of a reader that has gone."""

from __future__ import annotations

import io
import os
import sys

from codemods.output.table import NAME, printable


def prepare() -> None:
    """Streams that take every character, also where the caller closed them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # What is no text, as in a file's name, is written as JSON and Python escape it.
            stream.reconfigure(errors="backslashreplace")


def write(text: str) -> None:
    """Print for whoever still reads: the exit code must not hang on it."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        drop_stdout()


def drop_stdout() -> None:
    """Its reader has gone or its disk is full: what Python flushes at exit must not fail again."""
    stream = sys.__stdout__
    if stream is not None and sys.stdout is stream:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def log(*lines: str) -> None:
    """Lines for stderr, each with the command's name."""
    for line in lines:
        sys.stderr.write(f"{NAME}: {printable(line)}\n")


def colour(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return (
        bool(isatty and isatty())
        and not os.environ.get("NO_COLOR")
        and (os.environ.get("TERM") != "dumb")
    )


def width(stream: object) -> int | None:
    """The terminal's columns, which COLUMNS overrides; None where the stream is no terminal."""
    isatty = getattr(stream, "isatty", None)
    if not os.environ.get("COLUMNS") and not (isatty and isatty()):
        return None
    import shutil

    return shutil.get_terminal_size().columns


def progress(running: str | None) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{f'proving {running} …' if running else ''}")
        sys.stderr.flush()
