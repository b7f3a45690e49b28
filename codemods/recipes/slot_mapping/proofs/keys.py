"""The `keys` proof, in its own process: which kernels an engine compiles, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.triton_binder import (
    Binder,
    Launch,
    intercepted,
    key_difference,
    one_of_each_kind,
    tensors_of,
)
from codemods.prove.unknown import Choices, NotKnownError, every_way
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import (
    MAX_REQUESTS,
    Engine,
    buffers,
    build,
    calls_shown,
    engines,
    supported,
)
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.proof_process import serve
from codemods.recipes.slot_mapping.proofs.warming import as_on_a_gpu, choices_of, warm_up

if TYPE_CHECKING:
    from codemods.prove.pretended_gpu import PretendedGpu

NAME = "keys"
GroupAndKey = tuple[int, tuple[object, ...]]


@dataclass
class Recorder:
    """Collects the key of every launch, and the KV cache group that made it."""

    binder: Binder
    group: int = 0
    launches: int = 0
    seen: set[GroupAndKey] = field(default_factory=set)
    gpu: PretendedGpu | None = None
    on_host: list[str] = field(default_factory=list)

    def __call__(self, launch: Launch) -> None:
        self.launches += 1
        if self.gpu is None:
            self.seen.add((self.group, self.binder.key(launch)))
            return
        with self.gpu.paused():
            self.seen.add((self.group, self.binder.key(launch)))
        self.on_host += [name for name, tensor in tensors_of(launch) if not self.gpu.holds(tensor)]

    def turn_to(self, group: int | None, _: Callable[[], dict[str, Any]]) -> None:
        self.group = -1 if group is None else group

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
    warmed: bool = False
    where: str = ""
    on_host: tuple[str, ...] = ()

    @property
    def missed(self) -> frozenset[GroupAndKey]:
        """What requests compile and the warm-up has not, on whatever tables it did."""
        compiled = {key for _, key in self.warmup}
        return frozenset(one for one in self.requests if one[1] not in compiled)

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
        try:
            after = _all_keys(tree, job, binders)
        except NotKnownError as reason:
            return failed(NAME, f"not proved: {reason} (in the warm-up)")
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
    figures["stand_ins"] = tree.description
    complaint = next(filter(None, map(_complaint, after)), None)
    if complaint is not None:
        return failed(NAME, complaint, **figures)
    if job.after.warmup is None:
        raise CannotRunError(
            "requests compile each kernel once for each KV cache group, but there is no warm-up "
            "here to compare that with"
        )
    figures["keys_only_warmup"] = max(len(keys.warmup - keys.requests) for keys in after)
    figures["ways"] = len({keys.where for keys in after})
    return passed(NAME, _shown(figures, job), **figures)


def _shown(figures: dict[str, int | float | str], job: Job) -> str:
    """What the row shows, for someone who does not know the kernel's compile keys."""
    before = ""
    if "keys_before" in figures and int(figures["keys_before"]) > int(figures["keys_after"]):
        before = f"; before, requests compiled a kernel up to {figures['keys_before']} times over"
    return (
        f"the warm-up compiles every kernel that requests launch, in {figures['engines']} engines, "
        f"with batches of 1 to {job.max_num_tokens} tokens{before}"
    )


def _complaint(keys: Keys) -> str | None:
    """The first thing wrong with an engine, and which engine that is."""
    engine = f"an engine with {keys.engine}" + (f", where {keys.where}" if keys.where else "")
    if keys.most_per_group_and_kernel > 1:
        return (
            f"requests compile one kernel {keys.most_per_group_and_kernel} times over in {engine}: "
            f"{_difference(keys.requests)}"
        )
    if keys.on_host:
        return (
            f"the warm-up launches with {', '.join(dict.fromkeys(keys.on_host))} in the host's "
            f"memory, not on the device, in {engine}"
        )
    missed = keys.missed
    if missed and keys.warmed:
        what = _difference(missed | keys.warmup)
        done = "compiles another kernel than requests launch" if keys.warmup else "compiles nothing"
        return f"the warm-up {done} in {engine}: {what}"
    return None


def _all_keys(tree: Loaded, job: Job, binders: list[Binder]) -> list[Keys]:
    return [
        keys
        for binder in binders
        for site in job.call_sites
        for engine in engines(job.max_num_tokens)
        if supported(tree, engine)
        for keys in _each_way(
            tree, engine, site, binder, engine.every_count and binder is binders[0]
        )
    ]


def _each_way(
    tree: Loaded, engine: Engine, site: CallSite, binder: Binder, every: bool
) -> Iterator[Keys]:
    """The engine's keys, once for each answer that its warm-up may get to what it asks."""
    tree.platform.kind = binder.target.partition(":")[0]
    if tree.warmup is None:
        yield _keys(tree, engine, site, binder, every, None)
        return
    run = partial(_keys, tree, engine, site, binder, every)
    for where, keys in every_way(run, choices_of(tree.warmup, engine)):
        yield replace(keys, where=where)


def _keys(
    tree: Loaded,
    engine: Engine,
    site: CallSite,
    binder: Binder,
    every: bool,
    choices: Choices | None,
) -> Keys:
    recorder = Recorder(binder)
    tables, inputs = build(tree, engine), buffers(engine, site)
    with intercepted(recorder), calls_shown(tables, recorder.turn_to):
        if tree.warmup is not None and choices is not None:
            with as_on_a_gpu(tables, inputs, choices) as recorder.gpu:
                warm_up(tree.warmup, tables, inputs, choices, device=recorder.gpu.device)
            recorder.gpu = None
        warmup = recorder.taken()
        for num_reqs, num_tokens in batches(engine, every):
            inputs.call(tables, num_reqs, num_tokens)
    return Keys(
        engine,
        warmup,
        recorder.taken(),
        recorder.launches,
        warmed=choices is not None,
        on_host=tuple(recorder.on_host),
    )


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


def _difference(keys: frozenset[GroupAndKey]) -> str:
    """What tells two keys of one kernel and one group apart."""
    groups = sorted({group for group, _ in keys})
    each = (key_difference(key for own, key in keys if own == group) for group in groups)
    return next(filter(None, each), ", ".join(sorted({str(key[0]) for _, key in keys})))


if __name__ == "__main__":
    serve(NAME, prove)
