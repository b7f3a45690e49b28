"""Runs forks' trees, and requests after their warm-up: `forks.py TREE PACKAGE ...`.

The trees are small engines that run whole. tests/forks/engine.py runs them under Triton's
interpreter; here no kernel runs, and Triton's binder tells which compiles a GPU would see.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from .. import project
from .binder import Compiles, recording
from .record import Record
from .worker import METHOD, MODULE, calls

SETTINGS = ("v2", "last", "pooling", "eager", "small")
TRAFFIC = (
    ((1,), (5,), (16,)),
    ((5,), (2, 3), (1,)),
    ((16, 16), (4,)),
    ((2,), (1, 1), (3,), (1,), (64,)),
)
SMALL_TRAFFIC = (((1,), (1,)),)
SMALL = {"max_num_seqs": 1, "max_num_batched_tokens": 1}


def engine_class() -> Any:
    """tests/forks' engine, with kernels left as they are for a GPU."""
    from tests.forks import engine

    os.environ["TRITON_INTERPRET"] = "0"
    return engine.Engine


def judge(tree: str, package: str) -> Record:
    out = Record()
    try:
        engine = engine_class()(tree, package)
        compiles = Compiles(engine.watched)
        with recording(compiles):
            for values in product((False, True), repeat=len(SETTINGS)):
                settings = dict(zip(SETTINGS, values, strict=True))
                for traffic in SMALL_TRAFFIC if settings["small"] else TRAFFIC:
                    start(engine, settings, traffic, out, compiles)
        file = Path(tree, package, MODULE.replace(".", "/") + ".py")
        out.calls = calls(package, file)
    except Exception as error:  # the verdict shows it
        out.error = f"{type(error).__name__}: {error}"
    finally:
        os.environ.pop("ACME_ENGINE_STARTED", None)
        sys.path[:] = [path for path in sys.path if path != tree]
    return out


def start(
    engine: Any,
    settings: dict[str, bool],
    traffic: tuple[tuple[int, ...], ...],
    out: Record,
    compiles: Compiles,
) -> None:
    name = " ".join(word for word, is_so in settings.items() if is_so)
    engine.quiet()
    compiles.start()
    engine.module("distributed").get_pp_group().is_last_rank = settings["last"]
    worker = engine.worker(
        pooling=settings["pooling"],
        eager=settings["eager"],
        limits=SMALL if settings["small"] else {},
        **({"use_v2_model_runner": True} if settings["v2"] else {}),
    )
    getattr(worker, METHOD)()
    if settings["v2"]:
        out.v2_launches += compiles.launches
        return
    compiles.serving = True
    tables = worker.model_runner.input_batch.block_table
    try:
        for lengths in traffic:
            request(tables, lengths)
    except Exception as error:  # the verdict shows it
        out.unserved = f"{type(error).__name__}: {error}"
        return
    if compiles.late:
        out.late[name] = sorted({*out.late.get(name, ()), *compiles.late})


def request(tables: Any, lengths: tuple[int, ...]) -> None:
    import torch

    for row in range(len(lengths)):
        tables.add_row(([row + 1], [row + 2]), row)
    tables.commit_block_table(len(lengths))
    ends = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    tables.compute_slot_mapping(len(lengths), ends, torch.zeros(sum(lengths), dtype=torch.int64))


def main(words: list[str]) -> dict[str, Any]:
    sys.path[:0] = [str(project.ROOT)]
    trees = zip(words[::2], words[1::2], strict=True)
    return {tree: asdict(judge(tree, package)) for tree, package in trees}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
