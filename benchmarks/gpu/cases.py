"""What is served, as data: a model, how its server is started, and whose kernels it reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SLOT_MAPPING = "slot-mapping"
KV_BLOCK_ZEROING = "kv-block-zeroing"
RECIPES = (SLOT_MAPPING, KV_BLOCK_ZEROING)
COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"

# A side is a tree: as it is, with one recipe applied, with all of them.
BEFORE, ONE, BOTH = "before", "slot-mapping", "both"
SIDES = (BEFORE, ONE, BOTH)

TRITON = ("--attention-backend", "TRITON_ATTN")
V1 = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
V2 = {"VLLM_USE_V2_MODEL_RUNNER": "1"}
# GPUs share a host with others': no NVLink multicast, so reductions go through NCCL alone.
PLAIN_NCCL = (
    "--disable-custom-all-reduce",
    "--compilation-config",
    '{"pass_config": {"fuse_allreduce_rms": false}}',
)
NGRAM = (
    '{"method": "ngram", "num_speculative_tokens": 3,'
    ' "prompt_lookup_max": 3, "prompt_lookup_min": 2}'
)
DRAFT = '{"method": "draft_model", "model": "MODELS/dense", "num_speculative_tokens": 3}'


@dataclass(frozen=True)
class Case:
    """One way to start a server.

    `model` is a folder that models.py makes; `MODELS` in an argument is replaced by its parent.
    `recipes` are those whose kernel the case reaches, or is wanted to be shown not to reach.
    """

    name: str
    shows: str
    model: str = "dense"
    arguments: tuple[str, ...] = TRITON
    environment: Mapping[str, str] = field(default_factory=lambda: dict(V1))
    endpoint: str = COMPLETIONS
    recipes: tuple[str, ...] = (SLOT_MAPPING,)
    gpus: int = 1
    adapter: bool = False
    sleeps: bool = False
    in_gpu_test: bool = False

    def sides(self, available: tuple[str, ...]) -> tuple[str, ...]:
        """Which trees it is served from: `both` only where a second recipe's kernel is reached."""
        wanted = SIDES if KV_BLOCK_ZEROING in self.recipes else (BEFORE, ONE)
        return tuple(side for side in wanted if side in available)


CASES = (
    Case("dense", "a dense model, Triton attention", in_gpu_test=True),
    Case(
        "default-backend",
        "a dense model, the attention backend that vLLM chooses",
        arguments=(),
        in_gpu_test=True,
    ),
    Case(
        "hybrid",
        "Falcon-H1: attention and Mamba in each layer, two KV cache groups",
        model="falcon-h1",
        recipes=RECIPES,
        in_gpu_test=True,
    ),
    Case(
        "hybrid-nemotron",
        "Nemotron-H: attention, Mamba and feed-forward in layers of their own",
        model="nemotron-h",
        recipes=RECIPES,
    ),
    Case(
        "pooling",
        "embeddings of a decoder, whose pooling runner calls the kernel",
        arguments=(*TRITON, "--runner", "pooling"),
        endpoint=EMBEDDINGS,
        in_gpu_test=True,
    ),
    Case(
        "v2-runner",
        "the V2 runner, which has a kernel of its own and is left alone",
        environment=V2,
        in_gpu_test=True,
    ),
    Case(
        "hybrid-v2-runner",
        "Falcon-H1 with the V2 runner, which carries a zeroer from 0.23 on",
        model="falcon-h1",
        environment=V2,
        recipes=RECIPES,
    ),
    Case(
        "eager",
        "no torch.compile, no CUDA graphs",
        arguments=(*TRITON, "--enforce-eager"),
        in_gpu_test=True,
    ),
    Case("block-size-32", "blocks of 32 tokens", arguments=(*TRITON, "--block-size", "32")),
    Case("block-size-64", "blocks of 64 tokens", arguments=(*TRITON, "--block-size", "64")),
    Case(
        "sliding-window",
        "Gemma 3: sliding-window and full attention, KV cache groups of both",
        model="gemma3",
    ),
    Case(
        "draft-model",
        "a draft model proposes three tokens a step",
        arguments=(*TRITON, "--speculative-config", DRAFT),
    ),
    Case(
        "ngram",
        "n-gram lookup proposes three tokens a step",
        arguments=(*TRITON, "--speculative-config", NGRAM),
    ),
    Case(
        "lora",
        "a LoRA adapter, asked beside the base model",
        arguments=(
            *TRITON,
            *("--enable-lora", "--max-lora-rank", "8"),
            *("--lora-modules", "adapter=MODELS/adapter"),
        ),
        adapter=True,
    ),
    Case(
        "sleep-mode",
        "put to sleep and woken between requests",
        arguments=(*TRITON, "--enable-sleep-mode"),
        environment={**V1, "VLLM_SERVER_DEV_MODE": "1"},
        sleeps=True,
    ),
    Case(
        "fp8-kv-cache",
        "a KV cache of 8-bit floats",
        arguments=(*TRITON, "--kv-cache-dtype", "fp8"),
    ),
    Case(
        "one-sequence",
        "one sequence, 16 batched tokens: prompts come in pieces of 16",
        arguments=(*TRITON, "--max-num-seqs", "1", "--max-num-batched-tokens", "16"),
    ),
    Case(
        "no-prefix-caching",
        "no prefix caching, synchronous scheduling",
        arguments=(*TRITON, "--no-enable-prefix-caching", "--no-async-scheduling"),
    ),
    Case(
        "encoder",
        "BERT: attention without a KV cache, so no slots are computed",
        model="encoder",
        # bundle.py leaves flash attention no code for float16.
        arguments=("--runner", "pooling", "--max-model-len", "512", "--dtype", "bfloat16"),
        endpoint=EMBEDDINGS,
    ),
    Case(
        "tensor-parallel",
        "a dense model over two GPUs",
        arguments=(*TRITON, *PLAIN_NCCL, "-tp", "2"),
        gpus=2,
        in_gpu_test=True,
    ),
    Case(
        "pipeline-parallel",
        "a layer on each of two GPUs: every rank warms up",
        arguments=(*TRITON, *PLAIN_NCCL, "-pp", "2"),
        gpus=2,
        in_gpu_test=True,
    ),
    Case(
        "decode-context-parallel",
        "one KV cache over two GPUs, token by token",
        model="one-kv-head",
        arguments=(*PLAIN_NCCL, "-tp", "2", "--decode-context-parallel-size", "2"),
        gpus=2,
        in_gpu_test=True,
    ),
    Case(
        "data-parallel",
        "two engines behind one server",
        arguments=(*TRITON, *PLAIN_NCCL, "--data-parallel-size", "2"),
        gpus=2,
        in_gpu_test=True,
    ),
    Case(
        "hybrid-tensor-parallel",
        "Falcon-H1 over two GPUs",
        model="falcon-h1",
        arguments=(*TRITON, *PLAIN_NCCL, "-tp", "2"),
        recipes=RECIPES,
        gpus=2,
        in_gpu_test=True,
    ),
)
BY_NAME = {case.name: case for case in CASES}
