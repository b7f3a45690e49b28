"""Tells compiles apart as Triton does, with no GPU: by its own binder's key for each launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

# What the keys are made for; they differ between targets only in how pointers are distinguished.
TARGET = ("cuda", 90, 32)


@dataclass
class Compiles:
    """The compiles of one engine: those while it warms up, and those that come too late."""

    watched: Callable[[], bool]
    serving: bool = False
    keys: set[str] = field(default_factory=set)
    late: list[str] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.serving = False
        for seen in (self.keys, self.late, self.launches):
            seen.clear()

    def launched(self, kernel: Any, key: str) -> None:
        name = kernel.fn.__name__
        self.launches.append(name)
        if key not in self.keys:
            self.keys.add(key)
            if self.serving or self.watched():
                self.late.append(name)


@contextmanager
def recording(compiles: Compiles) -> Iterator[None]:
    """Have every launch bound and written down; no kernel runs."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.runtime.jit import JITFunction, create_function_from_signature

    backend = make_backend(GPUTarget(*TARGET))
    binders: dict[Any, Any] = {}

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        if self not in binders:
            binders[self] = create_function_from_signature(self.signature, self.params, backend)
        _, specialization, options = binders[self](*args, **kwargs)
        compiles.launched(self, f"{id(self)} {specialization} {sorted(options.items())}")

    original = JITFunction.run
    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = original
