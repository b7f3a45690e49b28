"""Tiny models with random weights and a tokenizer, so that real servers start with no download.

    python benchmarks/gpu/models.py DIR

DIR gets a folder for each of MODELS, `adapter` (LoRA for `dense`), and hub/, a Hugging Face cache
with what vLLM's own tests ask for. The weights are wide enough that what a token attends to
decides the next one, so that a wrong slot shows in an answer. Needs torch and transformers 5.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VOCABULARY = 384
LENGTH = 4096
SEED = 7
COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.3,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
DECODER = {**COMMON, "num_key_value_heads": 2, "head_dim": 64}
MAMBA = {
    "mamba_n_heads": 8,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
}


@dataclass(frozen=True)
class Model:
    """A model by its names in transformers, and its configuration."""

    config: str
    architecture: str
    settings: Mapping[str, Any] = field(default_factory=dict)


MODELS = {
    "dense": Model("Qwen3Config", "Qwen3ForCausalLM", {**DECODER, "tie_word_embeddings": True}),
    # Decode context parallelism splits what tensor parallelism would copy: one head of two ranks.
    "one-kv-head": Model("Qwen3Config", "Qwen3ForCausalLM", {**DECODER, "num_key_value_heads": 1}),
    "falcon-h1": Model(
        "FalconH1Config", "FalconH1ForCausalLM", {**DECODER, **MAMBA, "mamba_d_ssm": 512}
    ),
    "nemotron-h": Model(
        "NemotronHConfig",
        "NemotronHForCausalLM",
        {
            **DECODER,
            "num_hidden_layers": 4,
            "hybrid_override_pattern": "M*-M",
            "mamba_num_heads": 8,
            "mamba_head_dim": 64,
            "ssm_state_size": 64,
            "n_groups": 1,
            "conv_kernel": 4,
            "expand": 2,
            "chunk_size": 256,
        },
    ),
    "gemma3": Model(
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        {
            **DECODER,
            "num_hidden_layers": 4,
            "sliding_window": 64,
            "query_pre_attn_scalar": 64,
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        },
    ),
    "encoder": Model("BertConfig", "BertModel", {**COMMON, "max_position_embeddings": 512}),
}
GRANITE: dict[str, Any] = {
    "vocab_size": 49160,
    "hidden_size": 1536,
    "intermediate_size": 512,
    "num_hidden_layers": 40,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "mamba_n_heads": 48,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_expand": 2,
    "num_local_experts": 62,
    "num_experts_per_tok": 6,
    "max_position_embeddings": 131072,
}
GRANITE_ATTENTION = (5, 15, 25, 35)


def save_tokenizer(into: Path) -> None:
    """A byte-level BPE without merges: one token a byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<|end|>": 0, "[PAD]": 1} | {c: n for n, c in enumerate(alphabet, start=2)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|end|>", bos_token="<|end|>", pad_token="[PAD]"
    ).save_pretrained(into)


def save_model(into: Path, model: Model) -> None:
    import torch
    import transformers

    torch.manual_seed(SEED)
    config = getattr(transformers, model.config)(**model.settings)
    config.architectures = [model.architecture]
    getattr(transformers, model.architecture)(config).to(torch.bfloat16).save_pretrained(into)
    save_tokenizer(into)


def save_adapter(into: Path, rank: int = 8) -> None:
    """A LoRA adapter of the query and value projections of `dense`, in PEFT's format."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(SEED + 1)
    hidden, head = DECODER["hidden_size"], DECODER["head_dim"]
    outputs = {
        "q_proj": DECODER["num_attention_heads"] * head,
        "v_proj": DECODER["num_key_value_heads"] * head,
    }
    weights = {}
    for layer in range(DECODER["num_hidden_layers"]):
        for name, size in outputs.items():
            where = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{where}.lora_A.weight"] = 0.3 * torch.randn(rank, hidden)
            weights[f"{where}.lora_B.weight"] = 0.3 * torch.randn(size, rank)
    into.mkdir(parents=True, exist_ok=True)
    save_file({name: w.to(torch.bfloat16) for name, w in weights.items()},
              into / "adapter_model.safetensors")  # fmt: skip
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "dense",
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(outputs),
    }
    (into / "adapter_config.json").write_text(json.dumps(settings, indent=1) + "\n")


def snapshot(hub: Path, name: str) -> Path:
    """The folder of a model in a Hugging Face hub cache, with the reference that names it."""
    repository = hub / ("models--" + name.replace("/", "--"))
    revision = "0" * 40
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(revision)
    folder = repository / "snapshots" / revision
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save_hub(hub: Path) -> None:
    import torch
    from transformers import GraniteMoeHybridConfig, OPTConfig, OPTForCausalLM

    torch.manual_seed(SEED)
    opt = snapshot(hub, "facebook/opt-125m")
    OPTForCausalLM(OPTConfig(architectures=["OPTForCausalLM"])).half().save_pretrained(opt)
    save_tokenizer(opt)
    layers = [
        "attention" if n in GRANITE_ATTENTION else "mamba"
        for n in range(GRANITE["num_hidden_layers"])
    ]
    granite = snapshot(hub, "ibm-granite/granite-4.0-tiny-preview")
    GraniteMoeHybridConfig(
        architectures=["GraniteMoeHybridForCausalLM"], layer_types=layers, **GRANITE
    ).save_pretrained(granite)


def save_all(into: Path) -> None:
    """Every model, the adapter and the hub; one that fails is said and does not stop the others."""
    for name, model in MODELS.items():
        attempt(name, lambda name=name, model=model: save_model(into / name, model))
    attempt("adapter", lambda: save_adapter(into / "adapter"))
    attempt("hub", lambda: save_hub(into / "hub"))


def attempt(name: str, make: Any) -> None:
    try:
        make()
    except Exception as error:  # a server of this model will say that it is not there
        print(f"model {name}: {error!r}", file=sys.stderr)


if __name__ == "__main__":
    save_all(Path(sys.argv[1]))
