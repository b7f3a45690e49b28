"""The kernel compiles for each target, before and after."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.prove.compiled import compiled
from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof
from codemods.prove.proof_process import serve
from codemods.prove.triton_binder import Launch, intercepted
from codemods.recipes.kv_block_zeroing.proofs.caches import CACHES, build, runner
from codemods.recipes.kv_block_zeroing.proofs.job import Job
from codemods.recipes.kv_block_zeroing.proofs.loading import Loaded, loaded

NAME = "compile"
COUNTS = (1, 16, 17)  # of each of Triton's classes


def prove(job: Job) -> Proof:
    return compiled(NAME, job.targets, _sides(job))


def _sides(job: Job) -> Iterator[tuple[str, list[Launch]]]:
    for label, files in (("before", job.before), ("after", job.after)):
        if files is not None:
            with loaded(files) as tree:
                yield label, _launches(tree, job)


def _launches(tree: Loaded, job: Job) -> list[Launch]:
    """What the engines launch: the warm-up first, then a number of blocks of each class."""
    made: list[Launch] = []
    for cache in CACHES:
        engine = build(tree, cache)
        with intercepted(made.append):
            if tree.warmup is not None:
                tree.warmup(runner(job.attributes[0], engine))
            for count in COUNTS:
                engine.zeroer.zero_block_ids([1] * count)
    if not made:
        raise CannotRunError("zero_block_ids launches no Triton kernel in this tree")
    return made


if __name__ == "__main__":
    serve(NAME, Job.from_json, prove)
