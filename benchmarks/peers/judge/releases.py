"""Runs the worker's warm-up of real releases, and requests after it: `releases.py TREE ...`.

The worker, the block tables and the warm-up module are the tree's own; stands.py stands for the
rest of vLLM. So upstream's own warm-ups, which live elsewhere and cover some engines only, count
for nothing here: what a tree's fix misses, some engine compiles while it serves.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from .binder import Compiles, recording
from .record import Record
from .stands import Stand, World, stood_in
from .worker import METHOD, MODULE, every_setting, make, named

PACKAGE = "vllm"
OWN = ("v1.worker.block_table", "v1.worker.gpu.warmup", MODULE)
# Each KV cache group's block size and the size that the attention kernel works in.
GROUPS = (((16, 16),), ((32, 32),), ((528, 16), (64, 64)))
LIMITS = {"max_num_reqs": 8, "max_model_len": 1024, "max_num_batched_tokens": 64}
# Requests as tokens of each; Triton tells 1, multiples of 16 and other integers apart.
TRAFFIC = ((1,), (16,), (5,), (2, 3), (16, 16), (1, 1, 1), (64,))


class Buffer:
    """A tensor on the host, one on the device, and what copies between them."""

    def __init__(self, *shape: int, dtype: Any, device: Any, **_: Any) -> None:
        import torch

        self.cpu = torch.zeros(*shape, dtype=dtype)
        self.gpu = torch.zeros(*shape, dtype=dtype, device=device)
        self.np = self.cpu.numpy()

    def copy_to_gpu(self, n: int | None = None) -> Any:
        return self.gpu[:n].copy_(self.cpu[:n])


def known_names(world: World) -> dict[str, Any]:
    """What the modules under judgement need to work."""
    import triton
    import triton.language as tl

    def no_group() -> Any:
        raise AssertionError("not initialised")

    def monitor(*_: Any, **__: Any) -> None:
        world.calls.append("monitor")
        world.answers["watched"] = True

    return {
        "triton": triton,
        "tl": tl,
        "HAS_TRITON": True,
        "CpuGpuBuffer": Buffer,
        "PAD_SLOT_ID": -1,
        "PIN_MEMORY": False,
        "cdiv": lambda a, b: -(-a // b),
        "get_dcp_group": no_group,
        "get_pcp_group": no_group,
        "get_total_cp_world_size": lambda: 1,
        "activate": monitor,
    }


class Engine:
    """One release's worker and block tables; made inside `stood_in`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tables = importlib.import_module(f"{PACKAGE}.{OWN[0]}")
        warmup = importlib.import_module(f"{PACKAGE}.{OWN[1]}")
        if hasattr(warmup, "warmup_kernels"):
            warmup.warmup_kernels = Stand("warmup_kernels", world)  # V2's needs all of vLLM
        self.worker_class = importlib.import_module(f"{PACKAGE}.{OWN[2]}").Worker

    def block_tables(self, groups: tuple[tuple[int, int], ...]) -> Any:
        import torch

        made = self.tables.MultiGroupBlockTable
        given = {
            **LIMITS,
            "pin_memory": False,
            "device": torch.device("cpu"),
            "block_sizes": [size for size, _ in groups],
            "kernel_block_sizes": [size for _, size in groups],
            "max_num_blocks": [-(-LIMITS["max_model_len"] // size) for size, _ in groups],
            "cp_kv_cache_interleave_size": 1,
        }
        names = inspect.signature(made).parameters
        return made(**{name: given[name] for name in names if name in given})

    def warm_up(self, settings: dict[str, bool], tables: Any) -> list[str]:
        """Start; what the worker called, in its order."""
        worker = make(self.worker_class, self.world, settings, tables)
        self.world.calls.clear()
        getattr(worker, METHOD)()
        return list(self.world.calls)


def judge(tree: Path) -> Record:
    out, world = Record(), World()
    own = {f"{PACKAGE}.{name}": tree / PACKAGE / (name.replace(".", "/") + ".py") for name in OWN}
    own = {name: path for name, path in own.items() if path.exists()}
    compiles = Compiles(lambda: bool(world.answers.get("watched")))
    try:
        with stood_in(PACKAGE, own, world, known_names(world)), recording(compiles):
            engine = Engine(world)
            for settings, groups in product(every_setting(), GROUPS):
                start(engine, settings, groups, out, compiles)
    except Exception as error:  # the verdict shows it
        out.error = f"{type(error).__name__}: {error}"
    return out


def start(
    engine: Engine,
    settings: dict[str, bool],
    groups: tuple[tuple[int, int], ...],
    out: Record,
    compiles: Compiles,
) -> None:
    """One start of the engine and requests after it, then another start while one is live."""
    name = f"{named(settings)}, block size {groups[0][0]}"
    compiles.start()
    tables = engine.block_tables(groups)
    idle = state(tables)
    out.calls[name] = engine.warm_up(settings, tables)
    if state(tables) != idle:
        out.tables[name] = "of no request"
    if settings["v2"]:
        out.v2_launches += compiles.launches
        return
    compiles.serving = True
    try:
        for lengths in TRAFFIC:
            request(tables, len(groups), lengths)
    except Exception as error:  # the verdict shows it
        out.unserved = f"{type(error).__name__}: {error}"
        return
    if compiles.late:
        out.late[name] = sorted(set(compiles.late))
    live = state(tables)
    engine.warm_up(settings, tables)
    if state(tables) != live:
        out.tables[name] = "of a live request"


def request(tables: Any, groups: int, lengths: tuple[int, ...]) -> None:
    import torch

    for row in range(len(lengths)):
        tables.add_row(tuple([row + 1] for _ in range(groups)), row)
    tables.commit_block_table(len(lengths))
    ends = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    tables.compute_slot_mapping(len(lengths), ends, torch.zeros(sum(lengths), dtype=torch.int64))


def state(tables: Any) -> list[Any]:
    return [
        [t.num_blocks_per_row.tolist(), t.block_table.np.tolist(), t.block_table.gpu.tolist()]
        for t in tables.block_tables
    ]


if __name__ == "__main__":
    print(json.dumps({tree: asdict(judge(Path(tree))) for tree in sys.argv[1:]}))
