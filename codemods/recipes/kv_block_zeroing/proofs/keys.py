"""Which kernels an engine compiles, before and after, by Triton's own binder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.proof_process import serve
from codemods.prove.triton_binder import (
    Binder,
    Launch,
    intercepted,
    key_difference,
    one_of_each_kind,
)
from codemods.recipes.kv_block_zeroing.proofs.caches import CACHES, Cache, build, runner
from codemods.recipes.kv_block_zeroing.proofs.job import Job
from codemods.recipes.kv_block_zeroing.proofs.loading import Loaded, loaded

NAME = "keys"
# Every class that Triton knows of an integer: 1, a multiple of 16, any other. The last number makes
# the zeroer's buffers grow, which hold 8192 ids at first.
COUNTS = (*range(1, 66), *(2**power + step for power in range(7, 14) for step in (-1, 0, 1)))


@dataclass(frozen=True)
class Keys:
    """The keys of one engine: those its warm-up compiled and those its requests met."""

    cache: Cache
    warmup: frozenset[tuple[object, ...]]
    requests: frozenset[tuple[object, ...]]


def prove(job: Job) -> Proof:
    binders = [Binder(target) for target in one_of_each_kind(job.targets)]
    before: list[Keys] = []
    if job.before is not None:
        with loaded(job.before) as tree:
            before = _all_keys(tree, job, binders)
    with loaded(job.after) as tree:
        after = _all_keys(tree, job, binders)
    if not all(keys.requests for keys in after):
        raise CannotRunError("zero_block_ids launches no Triton kernel in this tree")
    figures: dict[str, int | float | str] = {
        "engines": len(CACHES),
        "counts": len(COUNTS),
        "keys_after": max(len(keys.requests) for keys in after),
    }
    if before:
        figures["keys_before"] = max(len(keys.requests) for keys in before)
    figures["stand_ins"] = tree.description
    for keys in after:
        complaint = _complaint(keys, warm=job.after.warm)
        if complaint is not None:
            return failed(NAME, f"{complaint} ({keys.cache})", **figures)
    if not job.after.warm:
        raise CannotRunError(
            "one key for each engine, but the tree does not have this tool's warm-up to compare"
        )
    before_text = f"up to {figures['keys_before']} before and " if before else ""
    return passed(
        NAME, f"requests meet {before_text}1 key now, which the warm-up compiles", **figures
    )


def _complaint(keys: Keys, *, warm: bool) -> str | None:
    if len(keys.requests) > 1:
        found = key_difference(keys.requests)
        return f"an engine still meets {len(keys.requests)} keys: {found}"
    if warm and keys.requests != keys.warmup:
        found = key_difference(keys.requests | keys.warmup)
        return (
            f"the warm-up does not compile what requests launch: {found or 'it launches nothing'}"
        )
    return None


def _all_keys(tree: Loaded, job: Job, binders: list[Binder]) -> list[Keys]:
    return [
        _keys(tree, cache, attribute, binder)
        for binder in binders
        for attribute in job.attributes
        for cache in CACHES
    ]


def _keys(tree: Loaded, cache: Cache, attribute: str, binder: Binder) -> Keys:
    seen: set[tuple[object, ...]] = set()

    def on_launch(launch: Launch) -> None:
        seen.add(binder.key(launch))

    engine = build(tree, cache)
    with intercepted(on_launch), _nothing_to_wait_for():
        if tree.warmup is not None:
            tree.warmup(runner(attribute, engine))
        warmup = frozenset(seen)
        seen.clear()
        for count in COUNTS:
            engine.zeroer.zero_block_ids([1] * count)
    return Keys(cache, warmup, frozenset(seen))


@contextmanager
def _nothing_to_wait_for() -> Iterator[None]:
    """As of 0.26 buffers that grow wait for the GPU; here is none."""
    with patch("torch.accelerator.synchronize"):
        yield


if __name__ == "__main__":
    serve(NAME, Job.from_json, prove)
