"""Runs trees for real: the worker warms up, requests follow, and every launch is written down.

A program of its own, because Triton's interpreter is chosen when Triton is imported:
`python engine.py TREE PACKAGE ... ` prints a JSON object that maps each TREE to its `Record`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

# Requests as (tokens of each), in the order they come; each list starts on a fresh engine.
TRAFFIC = [[(1,), (5,)], [(5,), (2, 3), (1,)], [(2, 3), (4,)], [(2,), (1, 1), (3,), (1,)]]


@dataclass
class Record:
    """What one tree did; a start is named by its settings, such as `v1 last pooling`."""

    # Kernels launched while warming up, by start; `!` marks one after the monitor or the start.
    launches: dict[str, list[str]] = field(default_factory=dict)
    # What warming up left in the tables that is not zero, by start.
    left: dict[str, str] = field(default_factory=dict)
    # What warming up again changed in tables that requests are using.
    live: dict[str, str] = field(default_factory=dict)
    # The slots after each step of each traffic.
    slots: list[Any] = field(default_factory=list)
    error: str = ""


class Engine:
    """One tree's modules, loaded afresh."""

    def __init__(self, tree: str, package: str) -> None:
        self.package = package
        for name in [n for n in sys.modules if n.split(".")[0] == package]:
            del sys.modules[name]
        sys.path.insert(0, tree)
        importlib.invalidate_caches()
        self.worker_module = self.module("v1.worker.gpu_worker")
        self.config = self.module("config")

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.package}.{name}")

    def worker(self, **settings: Any) -> Any:
        import torch

        pooling, eager = settings.pop("pooling", False), settings.pop("eager", False)
        limits = self.config.SchedulerConfig(**settings.pop("limits", {}))
        model = self.config.ModelConfig(is_pooling_model=pooling, enforce_eager=eager)
        config = self.config.VllmConfig(model_config=model, scheduler_config=limits, **settings)
        return self.worker_module.Worker(config, torch.device("cpu"))

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
    from triton.runtime import interpreter

    seen: list[str] = []
    engine = Engine(tree, package)
    run = interpreter.InterpretedFunction.run

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(("!" if engine.watched() else "") + self.fn.__name__)
        return run(self, *args, **kwargs)

    out = Record()
    interpreter.InterpretedFunction.run = recorded
    try:
        starts(engine, out, seen)
        for settings in ({}, {"limits": {"max_num_seqs": 1}}):
            if not settings:
                out.slots = [traffic(engine, steps) for steps in TRAFFIC]
            live(engine, out, settings)
    except Exception as error:  # the test shows it
        out.error = f"{type(error).__name__}: {error}"
    finally:
        interpreter.InterpretedFunction.run = run
        sys.path.remove(tree)
    return out


def starts(engine: Engine, out: Record, seen: list[str]) -> None:
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
        worker.compile_or_warm_up_model()
        out.launches[name] = list(seen)
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
    worker.compile_or_warm_up_model()
    if in_use(worker) != before:
        out.live[json.dumps(settings)] = in_use(worker)


def traffic(engine: Engine, steps: list[tuple[int, ...]]) -> list[Any]:
    import torch

    worker = engine.worker()
    worker.compile_or_warm_up_model()
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
    trees = list(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    print(json.dumps({tree: asdict(record(tree, package)) for tree, package in trees}))
