"""A worker whose model runner and other parts are stands, to run its warm-up method alone."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from .stands import Stand, World, stood_in

METHOD = "compile_or_warm_up_model"
MODULE = "v1.worker.gpu_worker"
# `other` is the outcome of every condition that none of the four decides.
SETTINGS = ("v2", "last", "pooling", "eager", "other")


def every_setting() -> Iterator[dict[str, bool]]:
    for values in product((False, True), repeat=len(SETTINGS)):
        yield dict(zip(SETTINGS, values, strict=True))


def named(settings: dict[str, bool]) -> str:
    return " ".join(word for word, is_so in settings.items() if is_so) or "none"


def make(owner: type, world: World, settings: dict[str, bool], tables: Any) -> Any:
    """A worker that has the attributes its warm-up asks for, with those block tables."""
    import torch

    runner, batch = Stand("runner", world), Stand("batch", world)
    batch.__dict__["block_table"] = tables
    pooling = settings["pooling"]
    runner.__dict__.update(input_batch=batch, device=torch.device("cpu"), is_pooling_model=pooling)
    world.truth = settings["other"]
    world.answers.clear()
    world.answers.update(
        is_last_rank=settings["last"], enforce_eager=settings["eager"], is_pooling_model=pooling
    )
    judged = type("Judged", (owner,), {"__getattr__": lambda _, n: Stand(f"worker.{n}", world)})
    worker = object.__new__(judged)
    worker.__dict__.update(model_runner=runner, use_v2_model_runner=settings["v2"])
    return worker


def calls(package: str, file: Path) -> dict[str, list[str]]:
    """What the method of a worker module calls, in its order, by settings."""
    world, found = World(), {}
    with stood_in(package, {f"{package}.{MODULE}": file}, world, {}):
        owner = importlib.import_module(f"{package}.{MODULE}").Worker
        for settings in every_setting():
            worker = make(owner, world, settings, Stand("tables", world))
            world.calls.clear()
            getattr(worker, METHOD)()
            found[named(settings)] = list(world.calls)
    return found
