"""Runs code of the tree on the CPU as if its tensors were on a GPU, and records which would be.

A tensor that the code makes on `DEVICE` is kept on the CPU. The mode records that it belongs to the
GPU, and so does every tensor that is computed from it. Any other tensor belongs to the host, and an
operation on both kinds fails, as on a GPU. Waiting for the GPU does nothing, and questions about it
have the answers of an engine.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from codemods.prove.unknown import Choices

DEVICE = torch.device("cuda", 0)
_TO_HOST = frozenset({"cpu", "numpy", "tolist", "item"})
_BETWEEN = frozenset({"copy_", "__setitem__", "__getitem__", "set_", "to", "type_as"})
_TENSOR: Any = torch.Tensor
_DEVICE = _TENSOR.device.__get__
_IS_CUDA = _TENSOR.is_cuda.__get__
_IS_CPU = _TENSOR.is_cpu.__get__


class PretendedGpu(TorchFunctionMode):
    """The mode; `tensors` are the GPU's from the start."""

    device = DEVICE

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._on_gpu = {_storage(tensor) for tensor in tensors}
        self._first = frozenset(self._on_gpu)
        self._made: list[weakref.ref[torch.Tensor]] = []
        self._paused = False

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor would be on the GPU."""
        with self.paused():
            return _storage(tensor) in self._on_gpu

    def left_behind(self) -> list[torch.Tensor]:
        """Tensors that the code made and something still holds."""
        alive = [tensor for one in self._made if (tensor := one()) is not None]
        if alive:
            import gc

            del alive
            gc.collect()
        return [tensor for one in self._made if (tensor := one()) is not None]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is pretended inside, as while a kernel runs."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def __torch_function__(
        self, func: Callable[..., Any], _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if self._paused or func is torch.device:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if func in (_DEVICE, _IS_CUDA, _IS_CPU):
            return self._place(func, args[0])
        given = [one for one in _flat((args, kwargs)) if isinstance(one, torch.Tensor)]
        on_gpu = [one for one in given if _storage(one) in self._on_gpu]
        if name == "numpy" and on_gpu:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        self._check_together(name, given, on_gpu)
        asked = [one for one in _devices(name, args, kwargs) if one is not None]
        result = func(*(_on_cpu(one) for one in args), **_all_on_cpu(kwargs))
        if name in _TO_HOST:
            return self._moved(result, given, on_gpu=False)
        if asked:
            return self._moved(result, given, on_gpu=asked[-1].type != "cpu")
        if name == "copy_":
            return result
        return self._noted(result, on_gpu=bool(on_gpu))

    def _place(self, func: Any, tensor: torch.Tensor) -> Any:
        on_gpu = _storage(tensor) in self._on_gpu
        if func == _DEVICE:
            return DEVICE if on_gpu else torch.device("cpu")
        return on_gpu is (func == _IS_CUDA)

    def _check_together(self, name: str, given: list[Any], on_gpu: list[Any]) -> None:
        if name in _BETWEEN or name in _TO_HOST or len(on_gpu) in (0, len(given)):
            return
        if any(one.dim() for one in given if _storage(one) not in self._on_gpu):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                "cuda:0 and cpu!"
            )

    def _moved(self, result: Any, given: list[Any], *, on_gpu: bool) -> Any:
        """A tensor on another device has memory of its own."""
        if isinstance(result, torch.Tensor) and given:
            shared = _storage(result) in {_storage(one) for one in given}
            if shared and (_storage(result) in self._on_gpu) is not on_gpu:
                result = result.clone()
        return self._noted(result, on_gpu=on_gpu)

    def _noted(self, result: Any, *, on_gpu: bool) -> Any:
        for tensor in _flat(result):
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = _storage(tensor)
            if storage in self._first:
                continue
            (self._on_gpu.add if on_gpu else self._on_gpu.discard)(storage)
            self._made.append(weakref.ref(tensor))
        return result


@contextmanager
def pretending(tensors: Iterable[torch.Tensor], choices: Choices) -> Iterator[PretendedGpu]:
    """Pretend while the tree's code runs; questions about the GPU itself go to `choices`."""
    mode = PretendedGpu(tensors)
    with ExitStack() as stack:
        for owner, answers in _answers(choices).items():
            for name, answer in answers.items():
                if hasattr(owner, name):
                    stack.enter_context(patch.object(owner, name, answer))
        stack.enter_context(mode)
        yield mode


def _answers(choices: Choices) -> dict[Any, dict[str, Any]]:
    """What torch says of its devices on a machine that has one."""

    def asked(path: str) -> Callable[..., Any]:
        return lambda *_, **__: choices.value(f"{path}()")

    def nothing(*_: Any, **__: Any) -> None:
        return None

    of_cuda = (
        "device_count", "get_device_capability", "get_device_name", "get_device_properties",
        "current_stream", "default_stream", "Stream", "Event", "memory_allocated", "mem_get_info",
        "memory_reserved", "max_memory_allocated",
    )  # fmt: skip
    common: dict[str, Any] = dict.fromkeys(("synchronize", "empty_cache", "set_device"), nothing)
    common["is_available"] = lambda: True
    return {
        torch.cuda: {
            **common,
            **{name: asked(f"torch.cuda.{name}") for name in of_cuda},
            "is_initialized": lambda: True,
            "current_device": lambda: 0,
            "is_current_stream_capturing": lambda: False,
            "stream": lambda *_: nullcontext(),
            "device": lambda *_: nullcontext(),
        },
        torch.accelerator: {
            **common,
            "current_accelerator": lambda *_, **__: torch.device("cuda"),
            "current_device_index": lambda: 0,
            "current_device_idx": lambda: 0,
            "device_count": asked("torch.accelerator.device_count"),
            "current_stream": asked("torch.accelerator.current_stream"),
        },
    }


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _flat(one)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    else:
        yield value


def _devices(name: str, args: Any, kwargs: dict[str, Any]) -> Iterator[torch.device | None]:
    """The devices that a call names."""
    if name == "cuda":
        yield DEVICE
    given = kwargs.get("device")
    if given is not None:
        yield torch.device(given)
    if name == "to":
        yield from (torch.device(one) for one in args[1:] if isinstance(one, (str, torch.device)))


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda")):
        return torch.device("cpu")
    return value


def _all_on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    kept = {name: _on_cpu(one) for name, one in kwargs.items() if name != "pin_memory"}
    if kept.get("device") is not None:
        kept["device"] = torch.device("cpu")
    return kept
