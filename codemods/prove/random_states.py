"""The random states of a process, to show that a call moves none of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

_NAMES = ("Python's", "NumPy's", "torch's", "the GPU's")


def random_states(device: Any) -> tuple[object, ...]:
    """The states of Python, NumPy, torch, and of the GPU where `device` is one."""
    import numpy as np
    import torch

    return (
        random.getstate(),
        str(np.random.get_state(legacy=False)),
        tuple(torch.get_rng_state().tolist()),
        _of_the_gpu(device),
    )


def moved(before: tuple[object, ...], after: tuple[object, ...]) -> Iterator[str]:
    """Each state that changed, as the end of a sentence."""
    for name, one, other in zip(_NAMES, before, after, strict=True):
        if one != other:
            yield f"moves {name} random state"


def _of_the_gpu(device: Any) -> tuple[int, ...]:
    """A GPU's random state; nothing for the CPU, whose state is torch's own."""
    import torch

    return () if device.type == "cpu" else tuple(torch.cuda.get_rng_state(device).tolist())
