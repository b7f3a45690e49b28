"""KV caches of every layout that decides the kernel's key, and the tree's own zeroer on them.

Blocks are the outermost dimension, or come after that of keys and values, as attention backends
have them. A block of the scheduler is one or several of the backend's. Each layer's cache is
between two borders that nothing may write to.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from codemods.prove.job import CannotRunError
from codemods.prove.standins import RunnerStandIn
from codemods.recipes.kv_block_zeroing.proofs.loading import FullAttentionSpec, Loaded

BORDER = 64  # elements
KEYS_AND_VALUES = 2


@dataclass(frozen=True)
class Cache:
    """One engine's caches: `ratio` of the backend's blocks make one of the scheduler's.

    `block_dim` is the blocks' dimension in the shape. Block 0 is the null block.
    """

    block_dim: int
    ratio: int = 1
    layers: int = 2
    kernel_block: int = 16
    heads: int = 2
    head_size: int = 8
    dtype: str = "float16"
    blocks: int = 7
    device: str = "cpu"

    def __str__(self) -> str:
        return (
            f"blocks in dimension {self.block_dim}, {self.ratio} of {self.kernel_block} tokens "
            f"each, {self.layers} layers of {self.heads} heads of {self.head_size} {self.dtype}"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        per_block = (self.kernel_block, self.heads, self.head_size)
        outer = (self.blocks * self.ratio, KEYS_AND_VALUES)
        return (*(outer if self.block_dim == 0 else outer[::-1]), *per_block)


CACHES = (
    Cache(0),
    Cache(1),
    Cache(0, ratio=3, layers=1),
    Cache(1, ratio=4, layers=3),
    Cache(0, kernel_block=33, heads=1, head_size=4),
    Cache(1, kernel_block=1, heads=1, head_size=2, layers=5),
    Cache(0, kernel_block=64, heads=8, head_size=64, layers=1, blocks=4),
    Cache(1, dtype="uint8", head_size=16),
    Cache(0, dtype="float32", ratio=2),
)


@dataclass
class Engine:
    """The tree's zeroer with the memory that it is for; `storage` has the borders too."""

    cache: Cache
    zeroer: Any
    storage: list[Any]

    def memory(self) -> list[Any]:
        """All bytes of each layer as NumPy has them, borders included."""
        return [one.cpu().numpy().copy() for one in self.storage]

    def with_zeroed(self, memory: list[Any], block_ids: list[int]) -> list[Any]:
        """What `memory` is once the blocks of these ids hold zeros, by NumPy alone."""
        ratio = self.cache.ratio
        for one in memory:
            inside = one[BORDER:-BORDER].reshape(self.cache.shape)
            for block in block_ids:
                place = slice(block * ratio, (block + 1) * ratio)
                inside[(slice(None),) * self.cache.block_dim + (place,)] = 0
        return memory


def build(tree: Loaded, cache: Cache, *, segments: bool = True) -> Engine:
    """An engine with random content; without `segments` no layer is one that is zeroed."""
    import torch

    random = np.random.default_rng(20260521)
    dtype = getattr(torch, cache.dtype)
    # Up to 0.18.1 a layer has a list of caches, one for each virtual engine.
    in_a_list = ".kv_cache[0]" in inspect.getsource(tree.zeroer)
    storage, layers = [], {}
    for index in range(cache.layers):
        size = int(np.prod(cache.shape)) + 2 * BORDER
        content = random.integers(1, 100, size)
        whole = torch.from_numpy(content).to(dtype).to(cache.device)
        storage.append(whole)
        view = whole[BORDER:-BORDER].view(cache.shape)
        layers[f"layer.{index}"] = RunnerStandIn(kv_cache=[view] if in_a_list else view)
    groups = [_group(cache, list(layers), FullAttentionSpec)] if segments else []
    mamba = RunnerStandIn(kv_cache=[torch.ones(4)])
    groups.append(_group(cache, ["mamba"], RunnerStandIn))
    given: dict[str, object] = {
        "device": torch.device(cache.device),
        "pin_memory": cache.device != "cpu",
        "attn_groups_iter": iter(groups),
        "kernel_block_sizes": [cache.kernel_block],
        "cache_dtype": "auto",
        "runner_only_attn_layers": set(),
        "static_forward_context": {**layers, "mamba": mamba},
        "max_concurrency": 2,
    }
    zeroer = _called(tree.zeroer, given)
    if hasattr(tree.zeroer, "init_meta"):  # up to 0.22.1 the constructor makes no table
        _called(zeroer.init_meta, given)
    return Engine(cache, zeroer, storage)


def _group(cache: Cache, layers: list[str], spec: type[RunnerStandIn]) -> RunnerStandIn:
    return RunnerStandIn(
        kv_cache_spec=spec(
            block_size=cache.kernel_block * cache.ratio,
            num_kv_heads=cache.heads,
            head_size=cache.head_size,
        ),
        kv_cache_group_id=0,
        backend=RunnerStandIn(get_kv_cache_block_dim=lambda *_, **__: cache.block_dim),
        layer_names=layers,
    )


def _called(function: Any, given: dict[str, object]) -> Any:
    """Call with those of the values that a parameter is named for."""
    named = inspect.signature(function).parameters
    lacking = [
        name
        for name, one in named.items()
        if name not in given and one.default is one.empty and one.kind is not one.VAR_KEYWORD
    ]
    if lacking:
        raise CannotRunError(f"the zeroer asks for `{lacking[0]}`, which nothing stands in for")
    return function(**{name: given[name] for name in named if name in given})


def runner(attribute: str, engine: Engine, num_blocks: int | None = None) -> RunnerStandIn:
    """What a warm-up is given: a runner that holds the zeroer under the name `attribute`."""
    blocks = engine.cache.blocks if num_blocks is None else num_blocks
    held = {attribute: engine.zeroer}
    return RunnerStandIn(**held, kv_cache_config=RunnerStandIn(num_blocks=blocks))
