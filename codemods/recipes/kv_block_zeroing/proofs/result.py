"""The kernel zeroes the named blocks and nothing else, by Triton's interpreter or a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.proof_process import serve
from codemods.prove.triton_binder import Launch, observed
from codemods.recipes.kv_block_zeroing.proofs.caches import CACHES, Cache, build
from codemods.recipes.kv_block_zeroing.proofs.job import Job, SideFiles
from codemods.recipes.kv_block_zeroing.proofs.loading import Loaded, loaded

NAME = "result"
# The null block, the last one, one in the middle, several out of order, one of them twice.
REQUESTS = ([0], [-1], [2], [3, 1], [-1, 2, 0, 2])


def prove(job: Job) -> Proof:
    caches = [replace(cache, device=job.device) for cache in CACHES]
    figures: dict[str, int | float | str] = {
        "engines": len(caches),
        "calls": len(caches) * len(REQUESTS),
    }
    for label, files in (("before", job.before), ("after", job.after)):
        complaint = _complaint(files, caches) if files is not None else None
        if complaint is not None:
            return failed(NAME, f"{label}: {complaint}", **figures)
    same = "before and after, " if job.before is not None else ""
    return passed(
        NAME,
        f"{same}the named blocks are zeros and all other memory is as it was, as NumPy has it, "
        "bit for bit",
        **figures,
    )


def _complaint(files: SideFiles, caches: list[Cache]) -> str | None:
    launches: list[Launch] = []
    with loaded(files) as tree, observed(launches.append):
        for cache in caches:
            found = _first_difference(tree, cache)
            if found is not None:
                return f"{found} ({cache})"
    if not launches:
        raise CannotRunError("zero_block_ids launches no Triton kernel in this tree")
    return None


def _first_difference(tree: Loaded, cache: Cache) -> str | None:
    engine = build(tree, cache)
    for places in REQUESTS:
        block_ids = [place % cache.blocks for place in places]
        expected = engine.with_zeroed(engine.memory(), block_ids)
        engine.zeroer.zero_block_ids(block_ids)
        for layer, (wanted, got) in enumerate(zip(expected, engine.memory(), strict=True)):
            if wanted.tobytes() != got.tobytes():
                return f"zeroing blocks {block_ids}, layer {layer}: {_describe(wanted, got)}"
    return None


def _describe(wanted: Any, got: Any) -> str:
    places = np.flatnonzero(wanted != got)
    first = int(places[0])
    return f"{len(places)} elements differ, the first is {got[first]} and not {wanted[first]}"


if __name__ == "__main__":
    serve(NAME, Job.from_json, prove)
