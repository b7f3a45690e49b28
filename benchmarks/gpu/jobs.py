"""What is served: which releases, which cases, before and after the rewrite."""

from __future__ import annotations

from dataclasses import dataclass

EVERY_CASE = ("0.23.0", "0.26.0")
RELEASES = ("0.20.2", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.26.0")
SIDES = ("before", "after")
TRITON = ("--attention-backend", "TRITON_ATTN")
# NVLink multicast must stay off where GPUs share a host with others': reductions go through NCCL.
PLAIN_NCCL = (
    "--disable-custom-all-reduce",
    "--compilation-config",
    '{"pass_config": {"fuse_allreduce_rms": false}}',
)
NGRAM = (
    '{"method": "ngram", "num_speculative_tokens": 3,'
    ' "prompt_lookup_max": 3, "prompt_lookup_min": 2}'
)


@dataclass(frozen=True)
class Case:
    """One way to start a server; `model` is a folder of models.py, `gpus` how many it spans."""

    name: str
    model: str = "dense"
    arguments: tuple[str, ...] = TRITON
    endpoint: str = "/v1/completions"
    gpus: int = 1
    releases: tuple[str, ...] = EVERY_CASE


CASES = (
    Case("dense", releases=RELEASES),
    Case("eager", arguments=(*TRITON, "--enforce-eager")),
    Case("default-backend", arguments=()),
    Case("hybrid", model="hybrid"),
    Case("pooling", arguments=(*TRITON, "--runner", "pooling"), endpoint="/v1/embeddings"),
    Case(
        "encoder",
        model="encoder",
        # The float16 code of flash attention does not load once bundle.py has thinned it.
        arguments=("--runner", "pooling", "--max-model-len", "512", "--dtype", "bfloat16"),
        endpoint="/v1/embeddings",
    ),
    Case("ngram", arguments=(*TRITON, "--speculative-config", NGRAM)),
    Case("block-size-32", arguments=(*TRITON, "--block-size", "32"), releases=("0.26.0",)),
    Case("tensor-parallel", arguments=(*TRITON, *PLAIN_NCCL, "-tp", "2"), gpus=2),
    Case("pipeline-parallel", arguments=(*TRITON, *PLAIN_NCCL, "-pp", "2"), gpus=2),
)


@dataclass(frozen=True)
class Job:
    """One server of one tree."""

    release: str
    case: Case
    side: str

    @property
    def name(self) -> str:
        return f"{self.release}-{self.case.name}-{self.side}"


def jobs(gpus: int) -> list[Job]:
    """The servers for a machine of `gpus` GPUs, a pair's two sides next to each other."""
    return [
        Job(release, case, side)
        for case in CASES
        if case.gpus == gpus
        for release in case.releases
        for side in SIDES
    ]


def waves(todo: list[Job], at_once: int) -> list[list[Job]]:
    """`todo` in groups that are served at the same time; a pair is never parted."""
    size = max(2, at_once - at_once % 2)
    return [todo[start : start + size] for start in range(0, len(todo), size)]
