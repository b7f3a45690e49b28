"""A proof on a GPU, in a process of its own: a launch takes as long as before, a warm-up is short.

Launches are captured into a CUDA graph of each side and replayed in turns, so that the time between
CUDA events is the GPU's alone; the median over the rounds is compared. Where its buffers lie makes
a launch some percent faster or slower, whatever the code (seen: 3.5 %), so each side is built
several times over, at other addresses; the `control` figures are one half of the builds before
against the other half. `do_not_specialize` could cost the kernel what its compiler no longer knows:
this shows whether it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build
from codemods.recipes.slot_mapping.proofs.gpu_compiles import compilations, synchronize, timed_ms
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.proof_process import serve
from codemods.recipes.slot_mapping.proofs.warming import choices_of, warm_up

NAME = "gpu-cost"
TOLERANCE = 0.03
# (requests, tokens): a decode step alone and in company, a chunk of a prompt, and a full batch.
SHAPES = ((1, 1), (16, 16), (128, 128), (1, 1000), (64, 8192))
Shape = tuple[int, int]
LAUNCHES = 100
BUILDS = 8
ROUNDS = 10  # of each build


@dataclass(frozen=True)
class Replay:
    """A captured graph, and the tensors that it reads and writes."""

    graph: Any
    kept: tuple[Any, ...]


def prove(job: Job) -> Proof:
    if job.after.warmup is None:
        raise CannotRunError("the tree does not have this tool's warm-up")
    engine = Engine(((16, 16),), max_model_len=8192, device=job.device)
    site = job.call_sites[0]
    with loaded(job.after) as tree:
        figures = _warmup(tree, engine, site)
        after = _launchers(tree, engine, site)
    if job.before is None:
        figures |= _compared(after, after)
        return passed(NAME, "the warm-up's time and a launch's; nothing to compare", **figures)
    with loaded(job.before) as tree:
        before = _launchers(tree, engine, site)
    figures |= _compared(before, after)
    worst = max((abs(_ratio(figures, shape) - 1), shape) for shape in SHAPES)
    ratio = (
        f"launches take {_ratio(figures, worst[1]):.3f} of what they took, where furthest from 1"
    )
    if figures["warmup_leaves_bytes"]:
        left = figures["warmup_leaves_bytes"]
        return failed(NAME, f"the warm-up leaves {left} bytes allocated", **figures)
    if worst[0] > TOLERANCE:
        requests, tokens = worst[1]
        return failed(NAME, f"{ratio} ({requests} requests, {tokens} tokens)", **figures)
    return passed(NAME, f"{ratio}; the warm-up adds {figures['warmup_ms']} ms", **figures)


def _ratio(figures: dict[str, int | float | str], shape: Shape) -> float:
    return float(figures[f"ratio_{shape[1]}_tokens"])


def _warmup(tree: Loaded, engine: Engine, site: CallSite) -> dict[str, int | float | str]:
    """What the warm-up adds to a start: with nothing compiled, and with everything compiled."""
    import torch

    from codemods.prove.probe import probe

    # The first kernel of a process also loads Triton's launcher; that is not the warm-up's cost.
    probe[(1,)](torch.zeros(1, dtype=torch.int32, device=engine.device))
    tables, inputs = build(tree, engine), buffers(engine, site)
    synchronize()
    assert tree.warmup is not None
    warmup = partial(warm_up, tree.warmup, tables, inputs, choices_of(tree.warmup, engine))
    in_use = torch.cuda.memory_allocated()
    compiled: list[str] = []
    with compilations(compiled.append):
        cold = timed_ms(warmup)
    again = [timed_ms(warmup) for _ in range(20)]
    return {
        "warmup_ms": round(cold, 1),
        "warmup_again_ms": round(median(again), 3),
        "warmup_compiles": len(compiled),
        "warmup_leaves_bytes": torch.cuda.memory_allocated() - in_use,
    }


def _compared(
    before: dict[Shape, list[Replay]], after: dict[Shape, list[Replay]]
) -> dict[str, int | float | str]:
    found: dict[str, int | float | str] = {}
    for shape in SHAPES:
        sides = (before[shape], after[shape])
        taken: tuple[list[float], list[float]] = ([], [])
        halves: tuple[list[float], list[float]] = ([], [])
        for turn in range(ROUNDS * BUILDS):
            # Each goes first every other time, so that a drifting clock favours neither.
            for side in (0, 1) if turn // BUILDS % 2 else (1, 0):
                taken[side].append(_event_us(sides[side][turn % BUILDS]))
            halves[turn % 2].append(taken[0][-1])
        old, new = median(taken[0]), median(taken[1])
        found[f"control_{shape[1]}_tokens"] = round(median(halves[1]) / median(halves[0]), 4)
        found[f"us_{shape[1]}_tokens_before"] = round(old, 3)
        found[f"us_{shape[1]}_tokens_after"] = round(new, 3)
        found[f"ratio_{shape[1]}_tokens"] = round(new / old, 4)
    return found


def _launchers(tree: Loaded, engine: Engine, site: CallSite) -> dict[Shape, list[Replay]]:
    return {
        shape: [_launcher(tree, engine, site, shape) for _ in range(BUILDS)] for shape in SHAPES
    }


def _launcher(tree: Loaded, engine: Engine, site: CallSite, shape: Shape) -> Replay:
    """LAUNCHES launches on a full batch of the shape, captured as a graph to replay."""
    import torch

    num_reqs, num_tokens = shape
    tables, inputs = build(tree, engine), buffers(engine, site)
    length = num_tokens // num_reqs
    for row in range(num_reqs):
        tables.add_row(([1 + row + n for n in range(-(-length // 16))],), row)
    tables.commit_block_table(num_reqs)
    starts = np.arange(num_reqs + 1) * length
    inputs.query_start_loc[: num_reqs + 1] = torch.from_numpy(starts)
    inputs.positions[:num_tokens] = torch.from_numpy(np.tile(np.arange(length), num_reqs))

    def call() -> None:
        inputs.call(tables, num_reqs, num_tokens)

    for _ in range(3):
        call()
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            call()
    graph.replay()
    synchronize()
    return Replay(graph, (tables, inputs))


def _event_us(replay: Replay) -> float:
    """Microseconds of one launch of a graph, by CUDA events."""
    import torch

    make: Any = torch.cuda.Event
    start, end = make(enable_timing=True), make(enable_timing=True)
    start.record()
    replay.graph.replay()
    end.record()
    end.synchronize()
    return float(1000 * start.elapsed_time(end) / LAUNCHES)


if __name__ == "__main__":
    serve(NAME, prove)
