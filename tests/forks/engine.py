"""Runs trees for real: the worker warms up, requests follow, and every launch is written down.

A program of its own, because Triton's interpreter is chosen when Triton is imported: for each line
`["TREE", "PACKAGE"]` on stdin it prints a line, the tree's `Record` as JSON.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

# Requests as (tokens of each), in the order they come; each list starts on a fresh engine.
TRAFFIC = [[(1,), (5,)], [(5,), (2, 3), (1,)], [(2, 3), (4,)], [(2,), (1, 1), (3,), (1,)]]
PARAMETER = "num_tokens"
SECONDS = 1.0  # of CPU time for a tree; one takes about 0.05


@dataclass
class Record:
    """What one tree did; a start is named by its settings, such as `v1 last pooling`."""

    # Kernels launched while warming up, by start; `!` marks one after the monitor or the start.
    launches: dict[str, list[str]] = field(default_factory=dict)
    # How a start ended that raised.
    raised: dict[str, str] = field(default_factory=dict)
    # Starts that ended with no monitor active and the engine not declared started.
    unwatched: list[str] = field(default_factory=list)
    # What warming up left in the tables that is not zero, by start.
    left: dict[str, str] = field(default_factory=dict)
    # What warming up again changed in tables that requests are using.
    live: dict[str, str] = field(default_factory=dict)
    # The slots after each step of each traffic.
    slots: list[Any] = field(default_factory=list)
    # Kernels with a run-time num_tokens that requests launch, and those of them that Triton
    # compiles anew for its values; not those of a kernel class, which registers its keys.
    requested: list[str] = field(default_factory=list)
    specialised: list[str] = field(default_factory=list)
    error: str = ""


class Anything:
    """What a fork's own additions are called on."""

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *problem: object) -> None:
        return None


class EndlessError(BaseException):
    """A tree took too long; no `except Exception` of it may keep this."""


def stop(*_: object) -> None:
    raise EndlessError


class Engine:
    """One tree's modules, loaded afresh."""

    def __init__(self, tree: str, package: str) -> None:
        self.package = package
        for name in [n for n in sys.modules if n.split(".")[0] == package]:
            del sys.modules[name]
        sys.path.insert(0, tree)
        importlib.invalidate_caches()
        self.quiet()
        importlib.import_module(package).fork = Anything()  # type: ignore[attr-defined]
        module = self.module("v1.worker.gpu_worker")
        owners = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and hasattr(value, "compile_or_warm_up_model")
        ]
        self.owner = getattr(module, "Worker", owners[-1] if owners else None)
        self.config = self.module("config")

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.package}.{name}")

    def worker(self, **settings: Any) -> Any:
        import torch

        pooling, eager = settings.pop("pooling", False), settings.pop("eager", False)
        limits = self.config.SchedulerConfig(**settings.pop("limits", {}))
        model = self.config.ModelConfig(is_pooling_model=pooling, enforce_eager=eager)
        config = self.config.VllmConfig(model_config=model, scheduler_config=limits, **settings)
        worker = self.owner(config, torch.device("cpu"))
        worker.fork = Anything()
        return worker

    def watched(self) -> bool:
        """Whether the monitor is active or the engine was declared started."""
        if "ACME_ENGINE_STARTED" in os.environ:
            return True
        flags = (
            ("triton_utils.jit_monitor", "active"),
            ("utils.jit_monitor", "active"),
            ("acme.watching", "begun"),
        )
        loaded = ((sys.modules.get(f"{self.package}.{name}"), flag) for name, flag in flags)
        return any(getattr(module, flag, False) for module, flag in loaded if module)

    def quiet(self) -> None:
        os.environ.pop("ACME_ENGINE_STARTED", None)
        for name in ("triton_utils.jit_monitor", "utils.jit_monitor", "acme.watching"):
            sys.modules.pop(f"{self.package}.{name}", None)


def record(tree: str, package: str) -> Record:
    import torch  # noqa: F401  # before the clock starts: the import alone takes about a second
    from triton.runtime import interpreter

    seen: list[Any] = []
    out = Record()
    run = interpreter.InterpretedFunction.run

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append((self, engine.watched()))
        return remembered(run, self, *args, **kwargs)

    interpreter.InterpretedFunction.run = recorded
    signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, SECONDS)
        engine = Engine(tree, package)
        starts(engine, out, seen)
        for settings in ({}, {"limits": {"max_num_seqs": 1}}):
            if not settings:
                requests(engine, out, seen)
            live(engine, out, settings)
    except BaseException as error:  # the test shows it
        out.error = f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        interpreter.InterpretedFunction.run = run
        interpreter.InterpretedFunction.rewritten_fn.clear()
        sys.path.remove(tree)
    return out


_EFFECTS: dict[Any, list[Any]] = {}


def remembered(run: Callable[..., Any], kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """A launch: what it writes hangs on the kernel's code and on what it is given, no more."""
    import torch

    given = [*args, *(kwargs[name] for name in sorted(kwargs) if name != "grid")]
    tensors = [one for one in given if isinstance(one, torch.Tensor)]
    key = (
        _code_of(kernel.fn), str(kwargs.get("grid")), tuple(sorted(kwargs)),
        tuple(_content(one) if isinstance(one, torch.Tensor) else repr(one) for one in given),
    )  # fmt: skip
    if callable(kwargs.get("grid")) or key not in _EFFECTS:
        run(kernel, *args, **kwargs)
        _EFFECTS[key] = [one.clone() for one in tensors]
    else:
        for tensor, after in zip(tensors, _EFFECTS[key], strict=True):
            tensor.copy_(after)


def _content(tensor: Any) -> Any:
    return (str(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.numpy().tobytes())


def _code_of(function: Any) -> Any:
    code, names = function.__code__, function.__globals__
    read = tuple(repr(names[n]) for n in code.co_names if isinstance(names.get(n), (int, str)))
    return code.co_code, code.co_consts, code.co_names, str(inspect.signature(function)), read


def starts(engine: Engine, out: Record, seen: list[Any]) -> None:
    group = engine.module("distributed").get_pp_group()
    every = [(False, *values, False) for values in product((False, True), repeat=3)]
    second = [(True, *[both] * 3, False) for both in (False, True)]
    narrow = [(False, last, False, False, True) for last in (False, True)]
    for values in every + second + narrow:
        settings = dict(zip(("v2", "last", "pooling", "eager", "small"), values, strict=True))
        name = " ".join(word for word, is_so in settings.items() if is_so)
        engine.quiet()
        seen.clear()
        group.is_last_rank = settings["last"]
        limits = {"max_num_seqs": 1, "max_num_batched_tokens": 1} if settings["small"] else {}
        worker = engine.worker(
            pooling=settings["pooling"],
            eager=settings["eager"],
            limits=limits,
            **({"use_v2_model_runner": True} if settings["v2"] else {}),
        )
        try:
            worker.compile_or_warm_up_model()
        except Exception as error:
            out.raised[name] = f"{type(error).__name__}: {error}"
        out.launches[name] = [
            ("!" if watched else "") + kernel.fn.__name__ for kernel, watched in seen
        ]
        if not engine.watched():
            out.unwatched.append(name)
        if left := in_use(worker):
            out.left[name] = left
    group.is_last_rank = True


def in_use(worker: Any) -> str:
    tables = worker.model_runner.input_batch.block_table.block_tables
    state = [
        [
            table.num_blocks_per_row.tolist(),
            table.block_table.np.tolist(),
            table.block_table.gpu.tolist(),
            # Negative ones are no slots, and those before block_size are the null block's.
            [slot for slot in table.slot_mapping.gpu.tolist() if slot >= table.block_size],
        ]
        for table in tables
    ]
    return json.dumps(state) if any(char in "123456789" for char in json.dumps(state)) else ""


def live(engine: Engine, out: Record, settings: dict[str, Any]) -> None:
    worker = engine.worker(**settings)
    tables = worker.model_runner.input_batch.block_table
    tables.add_row(([3], [2]), 0)
    tables.commit_block_table(1)
    before = in_use(worker)
    engine.quiet()
    worker.compile_or_warm_up_model()
    if in_use(worker) != before:
        out.live[json.dumps(settings)] = in_use(worker)


def requests(engine: Engine, out: Record, seen: list[Any]) -> None:
    kernels: list[Any] = []
    for steps in TRAFFIC:
        out.slots.append(traffic(engine, steps, seen))
        kernels += [kernel for kernel, _ in seen if "." not in kernel.fn.__qualname__]
    named = {kernel.fn.__name__: kernel for kernel in kernels if takes_num_tokens(kernel)}
    out.requested = sorted(named)
    out.specialised = sorted(name for name in named if specialises(named[name]))


def takes_num_tokens(kernel: Any) -> bool:
    found = inspect.signature(kernel.fn).parameters.get(PARAMETER)
    return found is not None and "constexpr" not in str(found.annotation)


def specialises(kernel: Any) -> bool:
    names = list(inspect.signature(kernel.fn).parameters)
    listed = kernel.kwargs.get("do_not_specialize") or ()
    return PARAMETER not in [names[one] if isinstance(one, int) else one for one in listed]


def traffic(engine: Engine, steps: list[tuple[int, ...]], seen: list[Any]) -> list[Any]:
    """The slots of each step on a fresh engine; `seen` has the steps' launches afterwards."""
    import torch

    worker = engine.worker()
    engine.quiet()
    worker.compile_or_warm_up_model()
    seen.clear()
    tables = worker.model_runner.input_batch.block_table
    slots = []
    for lengths in steps:
        for row in range(len(lengths)):
            tables.add_row(([row + 1], [row + 2]), row)
        tables.commit_block_table(len(lengths))
        ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).to(torch.int32)
        positions = torch.cat([torch.arange(n) for n in lengths])
        tables.compute_slot_mapping(len(lengths), ends, positions)
        slots.append([table.slot_mapping.gpu.tolist() for table in tables.block_tables])
    return slots


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"
    answers, sys.stdout = sys.stdout, sys.stderr  # a tree may print
    for line in sys.stdin:
        where, package = json.loads(line)
        print(json.dumps(asdict(record(where, package))), file=answers, flush=True)
