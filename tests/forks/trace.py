"""Runs a worker's method with stand-ins for everything it imports, and writes down each call.

It walks no syntax: it runs the code under every setting, so it cannot share a misreading with the
tool. It takes any worker, where `running` takes trees that run as a whole.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
from dataclasses import dataclass
from functools import lru_cache
from inspect import iscoroutine
from itertools import count, product
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

METHOD = "compile_or_warm_up_model"
OURS = "warmup_v1_slot_mapping_kernel"
STEPS = ("_dummy_sampler_run", "_dummy_pooler_run", ".warmup_kernels")
REAL = ("typing", "contextlib", "__future__", "collections.abc", "dataclasses", "abc", "enum")
# What the mixes rename: the attributes that mean V2, and the runner.
V2_NAMES = ("use_v2_model_runner", "use_v2")
RUNNER_NAMES = ("model_runner", "runner")
MONITORS = ("watching.begin",)  # a fork's own
FLAGS = ("v2", "last", "pooling", "eager", "other")
TURNS = 50  # of all `while` loops of a run


class Endless(BaseException):
    """A loop took too many turns; no `except Exception` of the worker may keep it."""


@dataclass(frozen=True)
class Settings:
    v2: bool
    last: bool
    pooling: bool
    eager: bool
    other: bool


class Stand:
    """Stands for anything imported: attributes are stands, calls are written down."""

    def __init__(self, path: str, events: list[str], settings: Settings) -> None:
        self.__dict__.update(path=path, events=events, settings=settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "is_last_rank":
            return self.settings.last
        if name == "is_pooling_model":
            return self.settings.pooling
        return Stand(f"{self.path}.{name}", self.events, self.settings)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.events.append(f"{self.path}[{key}]")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (FunctionType, type)):
            return args[0]
        self.events.append(self.path)
        return Stand(f"{self.path}()", self.events, self.settings)

    def __iter__(self) -> Any:
        return iter((self, self))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *problem: object) -> None:
        return None

    def __bool__(self) -> bool:
        return self.settings.other

    def __lt__(self, other: object) -> bool:
        return self.settings.other

    __gt__ = __le__ = __ge__ = __lt__

    def __add__(self, other: object) -> Stand:
        return self

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __floordiv__ = __rfloordiv__ = __round__ = __add__

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (object,)


def run(source: bytes, settings: Settings) -> list[str] | None:
    """The calls in their order, with how the method ended; None when the module cannot run."""
    events: list[str] = []

    def load(name: str, *rest: Any) -> Any:
        if name in REAL:
            return builtins.__import__(name, *rest)
        level = rest[3] if len(rest) > 3 else 0
        return Stand("." * level + name, events, settings)

    turns = count()

    def turn() -> None:
        if next(turns) > TURNS:
            raise Endless

    given = {**vars(builtins), "__import__": load, Turns.NAME: turn}
    names: dict[str, Any] = {"__builtins__": given, "__name__": "worker"}
    try:
        exec(_code(source), names)
        owners = [v for v in names.values() if isinstance(v, type) and METHOD in vars(v)]
        owner: Any = names.get("Worker", owners[-1])
        rest = {"__getattr__": lambda _, name: Stand(f"self.{name}", events, settings)}
        worker = object.__new__(type("Worker", (owner,), rest))
        method = getattr(worker, METHOD)
    except (Exception, Endless):
        return None
    _settle(worker, events, settings)
    events.clear()
    try:
        ended = method()
    except (Exception, Endless) as error:
        events.append(f"raised {type(error).__name__}")
    else:
        events.append("returned")
        if iscoroutine(ended):
            ended.close()
            return None
    return events


class Turns(ast.NodeTransformer):
    """Has every turn of a `while` loop counted."""

    NAME = "__turn__"

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        counted = ast.Expr(ast.Call(ast.Name(self.NAME, ast.Load()), [], []))
        node.body.insert(0, counted)
        return node


@lru_cache(maxsize=8)
def _code(source: bytes) -> CodeType:
    return compile(ast.fix_missing_locations(Turns().visit(ast.parse(source))), "worker", "exec")


def _settle(worker: Any, events: list[str], settings: Settings) -> None:
    def stand(path: str) -> Stand:
        return Stand(path, events, settings)

    for name in V2_NAMES:
        with contextlib.suppress(AttributeError):
            setattr(worker, name, settings.v2)
    worker.model_config = SimpleNamespace(seed=int(settings.other), enforce_eager=settings.eager)
    worker.scheduler_config = SimpleNamespace(max_num_seqs=4, max_num_batched_tokens=8)
    worker.compilation_config = SimpleNamespace(compile_sizes=[1], compilation_time=0.0)
    worker.observability_config = stand("observability")
    worker.vllm_config = stand("config")
    for name in RUNNER_NAMES:
        setattr(worker, name, stand("runner"))


@lru_cache(maxsize=64)
def faults(before: bytes, after: bytes) -> tuple[str, ...]:
    """What running both shows to be wrong with the rewrite of the worker."""
    found: set[str] = set()
    if before == after:
        return ()
    knows_v2 = any(name.encode() in before for name in V2_NAMES)
    for values in product((False, True), repeat=len(FLAGS)):
        settings = Settings(*values)
        was, now = run(before, settings), run(after, settings)
        if was is None:
            return ()
        if now is None:
            return ("the worker no longer loads",)
        ours = [place for place, event in enumerate(now) if event.endswith("." + OURS)]
        if [event for event in now if not event.endswith("." + OURS)] != was:
            found.add(f"other calls than before: {settings}")
        if settings.v2 and knows_v2:
            if ours:
                found.add(f"called for V2: {settings}")
            continue
        if len(ours) > 1:
            found.add(f"called twice: {settings}")
        steps = [i for i, event in enumerate(now) if event.endswith(STEPS)]
        late = [i for i, event in enumerate(now) if _announces(event)]
        if ours and steps and ours[0] < steps[-1]:
            found.add(f"called before the dummy run: {settings}")
        if late and not (ours and ours[0] < late[0]):
            found.add(f"not called before the monitor: {settings}")
        if not ours and steps and now[-1] == "returned":
            found.add(f"not called: {settings}")
    return tuple(sorted(found))


def _announces(event: str) -> bool:
    return (
        ("jit_monitor" in event and event.endswith(".activate"))
        or event.endswith(MONITORS)
        or ("environ[" in event and "STARTED" in event)
    )
