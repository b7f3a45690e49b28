"""The settings of a process that code may change for all that runs after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any


def process_settings() -> dict[str, object]:
    """torch's global settings and the environment, by name."""
    import torch

    backends = torch.backends
    settings: dict[str, object] = {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": _default_device(),
        "torch's number of threads": torch.get_num_threads(),
        "torch's gradient mode": torch.is_grad_enabled(),
        "torch's inference mode": torch.is_inference_mode_enabled(),
        "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch's matrix product precision": torch.get_float32_matmul_precision(),
        "torch's anomaly detection": torch.is_anomaly_enabled(),
    }
    for path in (
        "cudnn.benchmark", "cudnn.deterministic", "cudnn.enabled", "cudnn.allow_tf32",
        "cuda.matmul.allow_tf32", "cuda.matmul.allow_fp16_reduced_precision_reduction",
        "cuda.matmul.allow_bf16_reduced_precision_reduction",
    ):  # fmt: skip
        settings[f"torch.backends.{path}"] = _read(backends, path)
    settings |= {f"the environment variable {name}": value for name, value in os.environ.items()}
    return settings


def changed(before: dict[str, object], after: dict[str, object]) -> Iterator[str]:
    """Each setting that changed, as the end of a sentence."""
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield f"changes {name} from {old} to {new}"


def _default_device() -> object:
    import torch

    return str(torch.get_default_device())


def _read(owner: Any, path: str) -> object:
    try:
        for name in path.split("."):
            owner = getattr(owner, name)
    except (AttributeError, RuntimeError):  # a build without that backend
        return None
    result: object = owner
    return result
