"""Signals that would stop a write half way, put off until it has a good end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """A stopping signal came; says which."""


class Deferred:
    """Remembers the first stopping signal that came."""

    def __init__(self) -> None:
        self.caught: signal.Signals | None = None

    def note(self, number: int, _frame: FrameType | None) -> None:
        self.caught = self.caught or signal.Signals(number)

    def check(self) -> None:
        """Raise Interrupted when a signal has come."""
        if self.caught:
            raise Interrupted(f"interrupted by {self.caught.name}")


@contextmanager
def deferred() -> Iterator[Deferred]:
    """Put off SIGINT, SIGTERM and SIGHUP for the block.

    A block that ends well delivers the signal afterwards, with its usual effect. A block that
    raises does not: its failure ends the run already. Signals that are ignored stay ignored; off
    the main thread Python delivers none, so nothing is done there.
    """
    signals = Deferred()
    usual: dict[signal.Signals, Any] = {}
    on_main = threading.current_thread() is threading.main_thread()
    try:
        for number in _STOPPING if on_main else ():
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):
                usual[number] = handler
                signal.signal(number, signals.note)
        yield signals
    finally:
        # SIGINT last: from then on a KeyboardInterrupt may come.
        for number in reversed(tuple(usual)):
            signal.signal(number, usual[number])
    if signals.caught:
        signal.raise_signal(signals.caught)
