"""What the command prints, and what happens when the reader of a pipe has closed it."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

from codemods.output.table import NAME, NARROWEST, printable


class _Unfailing(io.RawIOBase):
    """A descriptor to which a write never fails: what cannot be written is dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        with suppress(OSError):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        return len(data)


def prepare() -> None:
    """Streams that take every character, also where the caller closed them.

    A stderr that is full, or whose reader has gone, changes nothing: its lines are lost, and the
    exit code is the documented one.
    """
    _occupy_standard_descriptors()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # What is no text, as in a file's name, is written as JSON and Python escape it.
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Unfailing(sys.stderr.fileno())),
            encoding=sys.stderr.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def _occupy_standard_descriptors() -> None:
    """Keep a file of the tree from getting the number of a standard stream that is closed."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def write(text: str, *, now: bool = False) -> None:
    """Print where a reader is left: the exit code must not depend on it.

    `now` says that a reader waits for it. Raises OSError where it cannot be delivered.
    """
    try:
        sys.stdout.write(text)
        if now:
            sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        raise undelivered(error) from None


def undelivered(error: OSError) -> OSError:
    """The error with the name of what it came from."""
    return OSError(error.errno, error.strerror, "standard output")


def drop_stdout() -> None:
    """Its reader has gone or its disk is full: what Python flushes at exit must not fail again."""
    stream = sys.__stdout__
    if stream is not None and sys.stdout is stream:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def log(*lines: str) -> None:
    """Lines for stderr, each with the command's name; a terminal gets them wrapped."""
    for line in lines:
        text = f"{NAME}: {printable(line)}"
        sys.stderr.write(f"{_wrapped(text) if _is_terminal(sys.stderr) else text}\n")


def _wrapped(text: str) -> str:
    import textwrap

    columns = max(width(sys.stderr) or 0, NARROWEST)
    return textwrap.fill(
        text, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def read_with_stderr(stream: object) -> bool:
    """Whether who reads the stream reads stderr too: it is stderr, or both are a terminal."""
    return stream is sys.stderr or (_is_terminal(stream) and _is_terminal(sys.stderr))


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def colour(stream: object) -> bool:
    return (
        _is_terminal(stream)
        and not os.environ.get("NO_COLOR")
        and (os.environ.get("TERM") != "dumb")
    )


def width(stream: object) -> int | None:
    """The terminal's columns, which COLUMNS overrides; None where the stream is no terminal."""
    if not os.environ.get("COLUMNS") and not _is_terminal(stream):
        return None
    return columns()


def columns() -> int:
    """What COLUMNS says, else the terminal's columns, else 80.

    As shutil.get_terminal_size() has it, but to load shutil takes longer than to make the parser.
    """
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    with suppress(AttributeError, ValueError, OSError):  # closed, or no terminal
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def progress(running: str | None) -> None:
    if _is_terminal(sys.stderr):
        sys.stderr.write(f"\r\033[K{f'proving {running} …' if running else ''}")
        sys.stderr.flush()
