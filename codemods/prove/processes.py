"""Starts programs for proofs, and ends them: at the time limit, and when the tool ends.

A program gets a session, a folder and an environment of its own. On Linux, a process that it starts
becomes a child of this tool when its parent ends, so that the tool can end it too, in any session.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_LARGEST_OUTPUT = 16 << 20  # bytes of each stream that are kept
_CHUNK = 1 << 16
_POLL = 0.05  # seconds between two looks at whether a process has ended
_END = 5.0  # seconds in which what a program started must be gone
_STOPPING = (signal.SIGTERM, signal.SIGHUP)
_BECOME_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>


@dataclass(frozen=True)
class Ended:
    """How a program ended and what it said; `status` is None where the time limit ended it.

    `answer` is what it wrote to the pipe that only it was given.
    """

    status: int | None
    output: bytes
    complaints: bytes
    answer: bytes = b""


class _Stopped(BaseException):
    """A signal that ends the tool came."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
    answers: bool = False,
) -> Ended:
    """Run a program to its end or the time limit, in seconds.

    Where `answers`, it gets the write end of a pipe, whose number is its last argument. Raises
    OSError where it cannot be started.
    """
    with _stopping_ends_all(), _adopting():
        reading, writing = os.pipe() if answers else (-1, -1)
        try:
            process = subprocess.Popen(
                [*command, str(writing)] if answers else [*command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=dict(environment),
                pass_fds=(writing,) if answers else (),
                start_new_session=True,
            )
            try:
                if answers:
                    os.close(writing)
                    writing = -1
                return _exchange(process, reading, stdin, time.monotonic() + timeout)
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout, process.stderr):
                    with suppress(OSError):
                        if pipe is not None:
                            pipe.close()
        finally:
            for descriptor in (reading, writing):
                if descriptor >= 0:
                    os.close(descriptor)


def _exchange(
    process: subprocess.Popen[bytes], answering: int, stdin: bytes, deadline: float
) -> Ended:
    """Feed and read the process until it ends; what it started may hold its pipes for longer."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    kept = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    if answering >= 0:
        kept[answering] = bytearray()
    with selectors.DefaultSelector() as selector:
        for descriptor in kept:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        rest = memoryview(stdin)
        while process.poll() is None and time.monotonic() < deadline:
            for key, events in selector.select(_POLL):
                if events & selectors.EVENT_WRITE:
                    rest = _written(process, rest)
                    if not rest:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                elif not _read(key.fd, kept[key.fd]):
                    selector.unregister(key.fd)
    status = process.poll()
    for descriptor, data in kept.items():
        while _read(descriptor, data, all_at_once=True):
            pass
    output, complaints, *answer = (bytes(data) for data in kept.values())
    return Ended(status, output, complaints, answer[0] if answer else b"")


def _written(process: subprocess.Popen[bytes], rest: memoryview) -> memoryview:
    """What is left to write; nothing where the process reads no more."""
    assert process.stdin is not None
    try:
        return rest[os.write(process.stdin.fileno(), rest[:_CHUNK]) :] if rest else rest
    except BlockingIOError:
        return rest
    except OSError:
        return rest[:0]


def _read(descriptor: int, kept: bytearray, *, all_at_once: bool = False) -> bool:
    """Read what is there; False at the end, and in the last sweep where nothing is there now."""
    try:
        part = os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return not all_at_once
    except OSError:
        return False
    kept += part[: max(0, _LARGEST_OUTPUT - len(kept))]
    return bool(part) and not (all_at_once and len(kept) >= _LARGEST_OUTPUT)


@contextmanager
def _stopping_ends_all() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block first, and have their usual effect then."""
    usual = {}
    if threading.current_thread() is threading.main_thread():
        for number in _STOPPING:
            if signal.getsignal(number) is signal.SIG_DFL:
                usual[number] = signal.signal(number, _stop)
    try:
        yield
    except _Stopped as stopped:
        signal.signal(stopped.number, signal.SIG_DFL)
        signal.raise_signal(signal.Signals(stopped.number))
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _stop(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise _Stopped(number)


@contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of every process that loses its own inside the block, and end it then."""
    if sys.platform != "linux":
        yield
        return
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    before = {one for one, parent in _parents() if parent == os.getpid()}
    prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _end_all_but(before)
        prctl(_BECOME_SUBREAPER, 0, 0, 0, 0)


def _end_all_but(before: set[int]) -> None:
    """Kill the processes below this one, and what they start meanwhile, but not those `before`."""
    deadline = time.monotonic() + _END
    while (found := _below(before)) and time.monotonic() < deadline:
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        for process in found:
            with suppress(OSError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.01)


def _below(before: set[int]) -> set[int]:
    parents = dict(_parents())
    found: set[int] = set()
    ours = {os.getpid()}
    while ours:
        ours = {one for one, parent in parents.items() if parent in ours} - before - found
        found |= ours
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Each process of the machine and its parent; none where there is no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in filter(str.isdecimal, names):
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                # The program's name, in brackets, may hold anything.
                fields = file.read().rpartition(b")")[2].split()
            yield int(name), int(fields[1])
