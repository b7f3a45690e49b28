"""The engines a proof sets up: what vLLM can be configured with, as block tables of the tree's own.

An engine's block sizes, table widths, interleave size and context-parallel ranks are fixed for its
life; its token and request counts vary with every batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from codemods.prove.job import CannotRunError
from codemods.prove.standins import Group, Runner, RunnerStandIn, cdiv
from codemods.prove.unknown import Choices
from codemods.recipes.slot_mapping.proofs.call_site import CallSite, Passed
from codemods.recipes.slot_mapping.proofs.loading import Function, Loaded

# vLLM's own choices of --block-size, and pairs of a cache block and the smaller block an attention
# kernel works in, as hybrid models get them (0.21.0: 528 and 1056 with Mamba layers).
BLOCK_SIZES = (1, 8, 16, 32, 64, 128, 256)
HYBRID = (((32, 16), (64, 64)), ((528, 16), (16, 16)), ((256, 64), (1056, 32), (16, 16)))
# Lengths whose table widths fall in each class Triton knows: 1, a multiple of 16, any other.
MODEL_LENGTHS = (1, 1000, 4096)
MAX_REQUESTS = 256


@dataclass(frozen=True)
class Engine:
    """One configuration; `groups` are pairs of a cache block size and a kernel block size.

    `every_count` asks for a batch of every token count: one engine of each block size, and of each
    class of width, has them all.
    """

    groups: tuple[tuple[int, int], ...]
    max_model_len: int = 4096
    max_num_reqs: int = MAX_REQUESTS
    max_num_tokens: int = 8192
    interleave: int = 1
    dcp: tuple[int, int] | None = None
    pcp: tuple[int, int] | None = None
    every_count: bool = False
    device: str = "cpu"

    def __str__(self) -> str:
        sizes = "+".join(str(a) if a == b else f"{a}/{b}" for a, b in self.groups)
        ranks = "".join(
            f", {name} rank {pair[1]} of {pair[0]}"
            for name, pair in (("dcp", self.dcp), ("pcp", self.pcp))
            if pair is not None
        )
        return (
            f"block size {sizes}, model length {self.max_model_len}, "
            f"interleave {self.interleave}{ranks}"
        )


def engines(max_num_tokens: int) -> Iterator[Engine]:
    """The engines whose largest batch is `max_num_tokens`."""
    return (replace(engine, max_num_tokens=max_num_tokens) for engine in _engines())


def _engines() -> Iterator[Engine]:
    """Every block size with every class of table width, then hybrids, then context parallelism."""
    for turn, size in enumerate(BLOCK_SIZES):
        for index, length in enumerate(MODEL_LENGTHS):
            yield Engine(
                ((size, size),),
                max_model_len=size if length == 1 else length,
                every_count=index == turn % len(MODEL_LENGTHS),
            )
    yield Engine(((16, 16), (64, 64)))
    for groups in HYBRID:
        yield Engine(groups)
        yield Engine(groups, dcp=(2, 1))
    for world in (2, 4, 8):
        for rank in {0, 1, world - 1}:
            yield Engine(((16, 16),), dcp=(world, rank))
    for interleave in (2, 16, 64):
        yield Engine(((64, 64),), interleave=interleave, dcp=(2, 1))
    yield Engine(((16, 16),), pcp=(2, 1))
    yield Engine(((16, 16),), pcp=(2, 1), dcp=(2, 1), interleave=16)


def supported(loaded: Loaded, engine: Engine) -> bool:
    """Whether the tree's block table knows what the engine asks for; a fork may have less."""
    module = loaded.block_table
    if any(size != kernel_size for size, kernel_size in engine.groups):
        table = getattr(module, "BlockTable", None)
        if table is None or "kernel_block_size" not in inspect.signature(table).parameters:
            return False
    if engine.dcp is not None and not hasattr(module, "get_dcp_group"):
        return False
    return engine.pcp is None or hasattr(module, "get_pcp_group")


def build(loaded: Loaded, engine: Engine) -> Any:
    """The tree's MultiGroupBlockTable for the engine, on its device.

    Its signature has changed over the releases, so arguments go by name; where a fork's takes
    others, it gets BlockTables made the same way. Raises CannotRunError where those want an
    argument that is not known here.
    """
    made = getattr(loaded.block_table, "MultiGroupBlockTable", None)
    table = getattr(loaded.block_table, "BlockTable", None)
    if made is None or table is None:
        raise CannotRunError("the tree's block_table.py has no BlockTable and MultiGroupBlockTable")
    loaded.parallelism.dcp = Group(*engine.dcp) if engine.dcp else None
    loaded.parallelism.pcp = Group(*engine.pcp) if engine.pcp else None
    widths = [
        cdiv(engine.max_model_len, size * (engine.dcp[0] if engine.dcp else 1))
        for size, _ in engine.groups
    ]
    shared = _known_arguments(engine)
    whole = {
        **shared,
        "block_sizes": [size for size, _ in engine.groups],
        "kernel_block_sizes": [size for _, size in engine.groups],
        "max_num_blocks": widths,
    }
    if not _unknown(made, whole):
        return _made(made, whole)
    if unknown := _unknown(table, {**shared, **_OF_ONE_TABLE}):
        raise CannotRunError(f"BlockTable wants {', '.join(unknown)}, not known here")
    tables = made.__new__(made)
    tables.block_tables = [
        _made(
            table, {**shared, **dict(zip(_OF_ONE_TABLE, (size, kernel_size, width), strict=True))}
        )
        for (size, kernel_size), width in zip(engine.groups, widths, strict=True)
    ]
    return tables


_OF_ONE_TABLE = dict.fromkeys(("block_size", "kernel_block_size", "max_num_blocks_per_req"))


def _known_arguments(engine: Engine) -> dict[str, Any]:
    import torch

    return {
        "max_num_reqs": engine.max_num_reqs,
        "max_model_len": engine.max_model_len,
        "max_num_batched_tokens": engine.max_num_tokens,
        "pin_memory": False,
        "device": torch.device(engine.device),
        "cp_kv_cache_interleave_size": engine.interleave,
    }


def _unknown(made: Any, known: dict[str, Any]) -> list[str]:
    return [
        parameter.name
        for parameter in inspect.signature(made).parameters.values()
        if parameter.name not in known and parameter.default is parameter.empty
    ]


def _made(made: Any, known: dict[str, Any]) -> Any:
    names = inspect.signature(made).parameters
    return made(**{name: known[name] for name in names if name in known})


def capacity(tables: Any, engine: Engine) -> int:
    """The longest request that fits in a row of every group, in tokens."""
    share = engine.dcp[0] if engine.dcp else 1
    widths = (device_table(table).shape[1] for table in tables.block_tables)
    fits: Iterator[int] = (
        w * size * share for w, (_, size) in zip(widths, engine.groups, strict=True)
    )
    return min(engine.max_model_len, *fits)


@dataclass(frozen=True)
class Buffers:
    """The runner's two input buffers, as its call site passes views of them."""

    query_start_loc_buffer: Any
    positions: Any
    site: CallSite

    @property
    def query_start_loc(self) -> Any:
        return self.query_start_loc_buffer.gpu

    def call(self, tables: Any, num_reqs: int, num_tokens: int) -> None:
        """The runner's call for one batch."""
        tables.compute_slot_mapping(
            num_reqs,
            _view(self.query_start_loc, self.site.query_start_loc, num_reqs + 1),
            _view(self.positions, self.site.positions, num_tokens),
        )


def buffers(engine: Engine, site: CallSite) -> Buffers:
    """Buffers of the engine's limits, of the call site's dtypes."""
    starts = _zeros(engine.max_num_reqs + 2, site.query_start_loc, engine)
    on_host = starts.cpu().clone()
    return Buffers(
        RunnerStandIn(gpu=starts, cpu=on_host, np=on_host.numpy()),
        _zeros(engine.max_num_tokens + 1, site.positions, engine),
        site,
    )


def _zeros(length: int, passed: Passed, engine: Engine) -> Any:
    import torch

    return torch.zeros(length, dtype=getattr(torch, passed.dtype), device=engine.device)


def _view(buffer: Any, passed: Passed, length: int) -> Any:
    # A start known only at run time may be any element; 1 is the least aligned.
    start = 1 if passed.offset is None else passed.offset
    return buffer[start : start + length]


def device_table(table: Any) -> Any:
    """The device's tensor of a block table, rows by blocks."""
    return getattr(table.block_table, "gpu", table.block_table)


def host_table(table: Any) -> Any:
    """The host's tensor of a block table; a fork may keep a plain one beside the device's."""
    buffer = table.block_table
    return buffer.cpu if hasattr(buffer, "gpu") else table.block_table_cpu


def slot_mapping(table: Any) -> Any:
    """The device's tensor of slots, one for each token of the largest batch."""
    return getattr(table.slot_mapping, "gpu", table.slot_mapping)


def on_the_device(tables: Any, inputs: Buffers) -> list[Any]:
    """The tensors that an engine has on its device."""
    own = [find(table) for table in tables.block_tables for find in (device_table, slot_mapping)]
    return [*own, inputs.query_start_loc, inputs.positions]


Show = Callable[[int | None, Callable[[], dict[str, Any]]], None]


@contextmanager
def calls_shown(tables: Any, show: Show) -> Iterator[None]:
    """Inside, each call of a table's compute_slot_mapping is first shown: its group, arguments.

    The group is None for a table that is none of the engine's, such as a copy of one. The arguments
    are put together when they are asked for: that takes longer than the call itself.
    """
    places = {id(table): group for group, table in enumerate(tables.block_tables)}
    with ExitStack() as stack:
        for kind in {type(table) for table in tables.block_tables}:
            original = kind.compute_slot_mapping
            named = inspect.signature(original)

            def compute(
                table: Any,
                *args: Any,
                _original: Callable[..., Any] = original,
                _named: inspect.Signature = named,
                **words: Any,
            ) -> Any:
                show(places.get(id(table)), lambda: _named.bind(table, *args, **words).arguments)
                return _original(table, *args, **words)

            stack.enter_context(patch.object(kind, "compute_slot_mapping", compute))
        yield


def known_values(engine: Engine) -> dict[str, Any]:
    """What an engine's configuration is by the names that a runner has for it."""
    specs = [
        RunnerStandIn(kv_cache_spec=RunnerStandIn(block_size=size), layer_names=[f"layer.{index}"])
        for index, (size, _) in enumerate(engine.groups)
    ]
    dcp, pcp = engine.dcp or (1, 0), engine.pcp or (1, 0)
    values = {
        "max_num_reqs": engine.max_num_reqs,
        "scheduler_config.max_num_seqs": engine.max_num_reqs,
        "max_num_tokens": engine.max_num_tokens,
        "scheduler_config.max_num_batched_tokens": engine.max_num_tokens,
        "max_model_len": engine.max_model_len,
        "model_config.max_model_len": engine.max_model_len,
        "cache_config.block_size": engine.groups[0][0],
        "kv_cache_config.kv_cache_groups": specs,
        "dcp_world_size": dcp[0],
        "dcp_rank": dcp[1],
        "pcp_world_size": pcp[0],
        "pcp_rank": pcp[1],
        "parallel_config.decode_context_parallel_size": dcp[0],
        "parallel_config.prefill_context_parallel_size": pcp[0],
        "parallel_config.cp_kv_cache_interleave_size": engine.interleave,
        "pin_memory": False,
    }
    return {
        f"model_runner.{whole}{name}": value
        for name, value in values.items()
        for whole in ("", "vllm_config.")
    }


def runner(
    warmup: Function,
    tables: Any,
    inputs: Buffers,
    choices: Choices,
    *,
    device: Any = None,
    num_reqs: int = 0,
) -> Any:
    """What a warm-up is given: the runner, or the worker where it takes that.

    The runner has the engine's tables and input buffers; `num_reqs` requests are in its batch.
    """
    facts = warmup.facts
    batch = Runner(
        "model_runner.input_batch", choices, _set(facts.batch), block_table=tables,
        num_reqs=num_reqs, req_ids=[f"request-{row}" for row in range(num_reqs)],
    )  # fmt: skip
    made = Runner(
        "model_runner", choices, _set(facts.runner), input_batch=batch,
        device=device or inputs.positions.device, positions=inputs.positions,
        query_start_loc=inputs.query_start_loc_buffer,
    )  # fmt: skip
    if not facts.takes_worker:
        return made
    return Runner("worker", choices, _set(facts.worker), model_runner=made)


def _set(names: list[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)
