"""A proof on a GPU, in a process of its own: once warmed up, no request compiles a kernel.

Triton's post-compile hook (`knobs.runtime.jit_post_compile_hook`, Triton 3.5 and later), by which
vLLM's monitor works too, is called for each kernel a process has not run before, whether its code
comes from the compiler or from the cache on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build, supported
from codemods.recipes.slot_mapping.proofs.job import Job, SideFiles
from codemods.recipes.slot_mapping.proofs.loading import loaded
from codemods.recipes.slot_mapping.proofs.proof_process import serve
from codemods.recipes.slot_mapping.proofs.warming import choices_of, warm_up

NAME = "gpu-compiles"
LIMIT = 8192
GROUPS = (
    ((1, 1),),
    ((16, 16),),
    ((32, 32),),
    ((64, 64),),
    ((528, 528),),
    ((32, 16),),
    ((528, 16),),
    ((528, 16), (16, 16)),
    ((32, 16), (64, 64), (16, 16)),
)
# (requests, tokens): each class of an integer argument, one request and many, and the limit.
BATCHES = (
    (1, 17),
    (1, 16),
    (1, 1),
    (1, 2),
    (1, 100),
    (1, LIMIT),
    (2, 2),
    (4, 16),
    (16, 17),
    (100, 100),
    (256, LIMIT),
)


@dataclass(frozen=True)
class Life:
    """One engine from start to requests: kernels compiled, and what the calls took."""

    engine: Engine
    at_warmup: tuple[str, ...]
    at_requests: tuple[str, ...]
    warmup_ms: float
    first_request_ms: float


def prove(job: Job) -> Proof:
    if job.after.warmup is None:
        raise CannotRunError("the tree does not have this tool's warm-up")
    engines = [Engine(groups, max_num_tokens=LIMIT, device=job.device) for groups in GROUPS]
    site = job.call_sites[0]
    before = _lives(replace(job.before, warmup=None), engines, site) if job.before else []
    after = _lives(job.after, engines, site)
    figures: dict[str, int | float | str] = {
        "engines": len(after),
        "batches": len(BATCHES),
        "compiled_by_warmup": sum(len(life.at_warmup) for life in after),
        "compiled_by_requests_after": sum(len(life.at_requests) for life in after),
        "first_warmup_ms": round(after[0].warmup_ms, 1),
        "first_request_ms_after": round(max(life.first_request_ms for life in after), 2),
        "warm_cache_warmup_ms": round(min(life.warmup_ms for life in after), 2),
    }
    if before:
        figures["compiled_by_requests_before"] = sum(len(life.at_requests) for life in before)
        figures["most_in_an_engine_before"] = max(len(life.at_requests) for life in before)
        figures["first_request_ms_before"] = round(before[0].first_request_ms, 1)
    if not figures["compiled_by_warmup"]:
        return failed(NAME, "the warm-up compiled nothing", **figures)
    for life in after:
        if life.at_requests:
            names = ", ".join(sorted(set(life.at_requests)))
            return failed(NAME, f"requests still compile {names} ({life.engine})", **figures)
    before_text = f"{figures['compiled_by_requests_before']} before, " if before else ""
    return passed(
        NAME, f"kernels that requests compile: {before_text}none after the warm-up", **figures
    )


def _lives(files: SideFiles, engines: list[Engine], site: CallSite) -> list[Life]:
    lives = []
    for engine in engines:
        # Loaded again each time: a module's kernels remember what they compiled.
        with loaded(files) as tree:
            if supported(tree, engine):
                lives.append(_life(tree, engine, site))
    if not lives:
        raise CannotRunError("the tree's block table supports none of the engines")
    return lives


def _life(tree: Any, engine: Engine, site: CallSite) -> Life:
    tables, inputs = build(tree, engine), buffers(engine, site)
    synchronize()
    compiled: list[str] = []
    with compilations(compiled.append):
        warmup_ms = first_ms = 0.0
        if tree.warmup is not None:
            warmup_ms = timed_ms(
                partial(warm_up, tree.warmup, tables, inputs, choices_of(tree.warmup, engine))
            )
        at_warmup = tuple(compiled)
        compiled.clear()
        for number, (num_reqs, num_tokens) in enumerate(BATCHES):
            call_ms = timed_ms(partial(inputs.call, tables, num_reqs, num_tokens))
            first_ms = first_ms if number else call_ms
    return Life(engine, at_warmup, tuple(compiled), warmup_ms, first_ms)


def timed_ms(call: Callable[[], object]) -> float:
    """Wall time of a call until the GPU has done what it started."""
    begun = time.perf_counter()
    call()
    synchronize()
    return 1000 * (time.perf_counter() - begun)


def synchronize() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def compilations(on_compile: Callable[[str], object]) -> Iterator[None]:
    """Tell `on_compile` the name of each kernel as Triton makes it ready."""
    import triton

    runtime = getattr(getattr(triton, "knobs", None), "runtime", None)
    if runtime is None or not hasattr(runtime, "jit_post_compile_hook"):
        raise CannotRunError("this triton has no jit_post_compile_hook")
    kept = runtime.jit_post_compile_hook

    def hook(**event: Any) -> None:
        on_compile(str(getattr(event.get("fn"), "name", "a kernel")))

    runtime.jit_post_compile_hook = hook
    try:
        yield
    finally:
        runtime.jit_post_compile_hook = kept


if __name__ == "__main__":
    serve(NAME, prove)
