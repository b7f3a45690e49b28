"""The `compile` proof, in its own process: kernels compile for each target, before and after."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.prove.compiled import compiled
from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof
from codemods.prove.triton_binder import Launch, intercepted
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import Engine, buffers, build, supported
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Loaded, loaded
from codemods.recipes.slot_mapping.proofs.proof_process import serve
from codemods.recipes.slot_mapping.proofs.warming import as_on_a_gpu, choices_of, warm_up

NAME = "compile"
# One engine with and one without context parallelism; token counts of each of Triton's classes.
ENGINES = (Engine(((16, 16),)), Engine(((32, 16),), interleave=2, dcp=(2, 1)))
BATCHES = ((1, 1), (1, 17), (2, 17), (2, 8192))


def prove(job: Job) -> Proof:
    return compiled(NAME, job.targets, _sides(job))


def _sides(job: Job) -> Iterator[tuple[str, list[Launch]]]:
    for label, files in (("before", job.before), ("after", job.after)):
        if files is not None:
            with loaded(files) as tree:
                yield label, _launches(tree, job.call_sites)


def _launches(tree: Loaded, sites: tuple[CallSite, ...]) -> list[Launch]:
    """What the engines launch: the warm-up first, then a batch of each class."""
    made: list[Launch] = []
    for engine in (engine for engine in ENGINES if supported(tree, engine)):
        for site in sites:
            tables, inputs = build(tree, engine), buffers(engine, site)
            with intercepted(made.append):
                if tree.warmup is not None:
                    choices = choices_of(tree.warmup, engine)
                    with as_on_a_gpu(tables, inputs, choices) as gpu:
                        warm_up(tree.warmup, tables, inputs, choices, device=gpu.device)
                for num_reqs, num_tokens in BATCHES:
                    inputs.call(tables, num_reqs, num_tokens)
    if not made:
        raise CannotRunError("compute_slot_mapping launches no Triton kernel in this tree")
    return made


if __name__ == "__main__":
    serve(NAME, prove)
