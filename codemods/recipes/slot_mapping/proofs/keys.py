"""Proof 4, in a process of its own: which kernels an engine compiles, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.triton_binder import (
    Binder,
    Launch,
    intercepted,
    key_difference,
    one_of_each_kind,
)
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import (
    MAX_REQUESTS,
    Engine,
    buffers,
    build,
    engines,
    runner,
    supported,
)
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.workers import serve

NAME = "keys"
GroupAndKey = tuple[int, tuple[object, ...]]


@dataclass
class Recorder:
    """Collects the key of every launch, and the KV cache group that made it."""

    binder: Binder
    group: int = 0
    launches: int = 0
    seen: set[GroupAndKey] = field(default_factory=set)

    def __call__(self, launch: Launch) -> None:
        self.launches += 1
        self.seen.add((self.group, self.binder.key(launch)))

    def taken(self) -> frozenset[GroupAndKey]:
        seen = frozenset(self.seen)
        self.seen.clear()
        return seen


@dataclass(frozen=True)
class Keys:
    """The keys of one engine: those its warm-up compiled and those its requests met."""

    engine: Engine
    warmup: frozenset[GroupAndKey]
    requests: frozenset[GroupAndKey]
    launches: int

    @property
    def most_per_group_and_kernel(self) -> int:
        met: dict[tuple[int, object], int] = {}
        for group, key in self.requests:
            met[group, key[0]] = met.get((group, key[0]), 0) + 1
        return max(met.values(), default=0)


def prove(job: Job) -> Proof:
    binders = [Binder(target) for target in one_of_each_kind(job.targets)]
    before: list[Keys] = []
    if job.before is not None:
        with loaded(job.before) as tree:
            before = _all_keys(tree, job, binders[:1])
    with loaded(job.after) as tree:
        after = _all_keys(tree, job, binders)
    if not any(keys.requests for keys in after):
        raise CannotRunError("compute_slot_mapping launches no Triton kernel in this tree")
    figures: dict[str, int | float | str] = {
        "engines": len({keys.engine for keys in after}),
        "launches": sum(keys.launches for keys in after),
        "keys_after": max(keys.most_per_group_and_kernel for keys in after),
        "kernels": len({key[0] for keys in after for _, key in keys.requests}),
    }
    if before:
        figures["keys_before"] = max(keys.most_per_group_and_kernel for keys in before)
    figures["stand_ins"] = tree.told
    return _verdict(job, after, figures)


def _verdict(job: Job, after: list[Keys], figures: dict[str, int | float | str]) -> Proof:
    for keys in after:
        if keys.most_per_group_and_kernel > 1:
            return failed(
                NAME,
                f"an engine still meets {keys.most_per_group_and_kernel} keys of one kernel in one "
                f"KV cache group ({keys.engine}): {_difference(keys.requests)}",
                **figures,
            )
    if job.after.warmup is None:
        raise CannotRunError(
            "one key for each KV cache group, but there is no warm-up of ours to compare it with"
        )
    for keys in after:
        missed = keys.requests - keys.warmup
        if missed:
            return failed(
                NAME,
                f"the warm-up does not compile what requests launch ({keys.engine}): "
                f"{_difference(missed | keys.warmup)}",
                **figures,
            )
    figures["keys_only_warmup"] = max(len(keys.warmup - keys.requests) for keys in after)
    told = f"up to {figures['keys_before']} before and " if "keys_before" in figures else ""
    return passed(
        NAME,
        f"requests of a KV cache group meet {told}1 key now, which the warm-up compiles",
        **figures,
    )


def _all_keys(tree: Loaded, job: Job, binders: list[Binder]) -> list[Keys]:
    return [
        _keys(tree, engine, site, binder, every=engine.every_count and binder is binders[0])
        for binder in binders
        for site in job.call_sites
        for engine in engines(job.max_num_tokens)
        if supported(tree, engine)
    ]


def _keys(tree: Loaded, engine: Engine, site: CallSite, binder: Binder, *, every: bool) -> Keys:
    recorder = Recorder(binder)
    tables = build(tree, engine)
    _tell_groups_apart(tables, recorder)
    inputs = buffers(engine, site)
    with intercepted(recorder):
        if tree.warmup is not None:
            tree.warmup(runner(tree, tables, inputs))
        warmup = recorder.taken()
        for num_reqs, num_tokens in batches(engine, every):
            inputs.call(tables, num_reqs, num_tokens)
    return Keys(engine, warmup, recorder.taken(), recorder.launches)


def batches(engine: Engine, every: bool) -> Iterator[tuple[int, int]]:
    """Request and token counts: `every` token count up to the limit, or some of each class.

    Triton tells integers apart by being 1, a multiple of 16, or neither; the counts of `some` hold
    many of each, with the powers of two, their neighbours and the limits.
    """
    limit = engine.max_num_tokens
    near = {2**power + step for power in range(14) for step in (-1, 0, 1)}
    some = sorted(n for n in {*range(1, 65), *near, limit - 1, limit} if 1 <= n <= limit)
    for num_tokens in range(1, limit + 1) if every else some:
        yield 1, num_tokens
    most = min(engine.max_num_reqs, MAX_REQUESTS)
    for num_tokens in some[1:]:
        for num_reqs in sorted({2, 16, num_tokens // 2, num_tokens, most}):
            if 2 <= num_reqs <= min(num_tokens, most):
                yield num_reqs, num_tokens


def _tell_groups_apart(tables: Any, recorder: Recorder) -> None:
    """Have each group's table say which it is when it launches."""
    for index, table in enumerate(getattr(tables, "block_tables", ())):
        original = table.compute_slot_mapping

        def compute(
            *args: Any, _index: int = index, _original: Any = original, **words: Any
        ) -> Any:
            recorder.group = _index
            return _original(*args, **words)

        table.compute_slot_mapping = compute


def _difference(keys: frozenset[GroupAndKey]) -> str:
    """What tells two keys of one kernel and one group apart."""
    groups = sorted({group for group, _ in keys})
    each = (key_difference(key for own, key in keys if own == group) for group in groups)
    return next(filter(None, each), ", ".join(sorted({str(key[0]) for _, key in keys})))


if __name__ == "__main__":
    serve(NAME, prove)
