"""Tiny models with a tokenizer, so that real servers start without any download.

    python benchmarks/gpu/models.py DIR

DIR gets a folder for each of
    dense    Qwen3, 2 layers, hidden 256, head 64; also embeds, drafts, and splits over two GPUs
    hybrid   Falcon-H1: attention and Mamba-2 in each layer, hence two KV cache groups
    encoder  BERT with pooling: attention without a KV cache
    random   `dense` with weights, large enough that what a token attends to decides the next one
and hub/, a Hugging Face cache with what vLLM's tests/v1/worker/test_gpu_model_runner.py asks for.
The servers load `--load-format dummy`; only `random` and opt-125m have weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

VOCABULARY = 384
LENGTH = 4096

DENSE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": LENGTH,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 0,
}
HYBRID: dict[str, Any] = {
    "architectures": ["FalconH1ForCausalLM"],
    "model_type": "falcon_h1",
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": LENGTH,
    "rope_theta": 10000.0,
    "mamba_d_ssm": 512,
    "mamba_n_heads": 8,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
ENCODER: dict[str, Any] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "dtype": "float16",
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


def save_model(into: Path, config: dict[str, Any]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    (into / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_tokenizer(into)


def save_random(into: Path) -> None:
    """`dense` with seeded weights, wide enough that attention changes what comes next."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(7)
    config = Qwen3Config(**{k: v for k, v in DENSE.items() if k != "architectures"})
    config.initializer_range = 0.3
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(into)
    save_tokenizer(into)


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

    torch.manual_seed(7)
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


def main() -> None:
    into = Path(sys.argv[1])
    save_model(into / "dense", DENSE)
    save_model(into / "hybrid", HYBRID)
    save_model(into / "encoder", ENCODER)
    save_random(into / "random")
    save_hub(into / "hub")


if __name__ == "__main__":
    main()
