"""What is known of tensors: how long they are, of which dtype, on which device, from where on."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.recipes.warm_up.values import (
    Arguments,
    DottedName,
    Items,
    Known,
    Setting,
    Tensor,
    Value,
    Varying,
    arithmetic,
    unknown,
)


def sliced(base: Value, text: str, lower: Value, upper: Value | None) -> Value:
    if isinstance(base, Items):
        ends = [lower, upper or Known(None)]
        if base.whole and all(isinstance(end, Known) for end in ends):
            first, last = (end.value for end in ends if isinstance(end, Known))
            return Items(base.items[first:last])
        return base
    if isinstance(base, Tensor):
        length = upper if upper is not None and lower == Known(0) else None
        if length is None and isinstance(lower, Known):
            length = arithmetic(upper or base.length, ast.Sub(), lower)
        start = lower if base.start == Known(0) else base.start
        return Tensor(text, length or Varying(text), base.dtype, base.device, start)
    if isinstance(base, Setting) and upper is not None:
        # A view of a buffer: what it starts at is what matters to a kernel.
        return Tensor(text, upper, None, Setting("device"), lower)
    return unknown(text, base, *([upper] if upper else []), lower)


def attribute(base: Tensor, name: str) -> Value:
    if name == "shape":
        return Items((base.length,))
    if name == "is_cuda":
        return Known(True)
    return Setting(f"{base.text}.{name}")


_SAME = frozenset({"contiguous", "view", "detach", "reshape", "flatten", "cuda", "long"})


def method(base: Tensor, name: str, given: Arguments) -> Value:
    if name in ("numel", "size", "__len__"):
        return base.length
    if name in ("stride", "dim", "element_size", "is_contiguous"):
        return Setting(f"{base.text}.{name}()")
    if name == "to":
        device = next((one for one in given[0] if isinstance(one, Setting)), base.device)
        dtype = next((d for d in map(_dtype, (*given[0], *given[1].values())) if d), base.dtype)
        return Tensor(f"{base.text}.to()", base.length, dtype, given[1].get("device", device))
    if name == "clone":
        return replace(base, text=f"{base.text}.clone()")
    if name in _SAME:
        return base
    return Varying(f"{base.text}.{name}()")


_MAKERS = frozenset(
    {"zeros", "ones", "empty", "full", "arange", "tensor", "as_tensor", "from_numpy"}
)
_MANY = 10_000


def created(path: str, text: str, given: Arguments) -> Value | None:
    """`torch.zeros(2, dtype=…, device=…)` and its like."""
    package, _, name = path.partition(".")
    if name not in _MAKERS or not given[0]:
        return None
    first = given[0][0]
    if name == "from_numpy":
        array = first if isinstance(first, Tensor) else Tensor(text, Setting(f"len({text})"))
        return replace(array, text=text, device=Known("cpu"))
    length: Value = first
    if isinstance(first, Items):
        length = Known(len(first.items)) if first.whole else Setting(text)
        if name not in ("tensor", "as_tensor") and first.items:
            length = first.items[0]
    if name == "arange":
        length = _arange(given[0])
    dtype = _dtype(given[1].get("dtype", Known(None)))
    device = given[1].get("device", Known("cpu") if package == "torch" else Known("host"))
    return Tensor(text, length, dtype, device, largest=_largest(name, given[0]))


def _largest(maker: str, given: tuple[Value, ...]) -> Value | None:
    """The largest element, where all are known."""
    first = given[0].items if isinstance(given[0], Items) else given
    numbers = [one.value for one in first if isinstance(one, Known)]
    if maker in ("zeros", "ones"):
        return Known(int(maker == "ones"))
    if maker == "full":
        fill = given[1] if len(given) > 1 else None
        return fill if isinstance(fill, Known) else None
    if len(numbers) != len(first) or not all(isinstance(one, int) for one in numbers):
        return None
    if maker == "arange":
        few = all(abs(one) < _MANY for one in numbers) and numbers[2:] != [0]
        numbers = [*range(*numbers)] if few else []
    elif maker not in ("tensor", "as_tensor"):
        return None
    return Known(max(numbers)) if numbers else None


def _arange(given: tuple[Value, ...]) -> Value:
    numbers = [one.value for one in given if isinstance(one, Known)]
    if len(numbers) != len(given) or not all(isinstance(one, int) for one in numbers):
        return given[1] if len(given) > 1 else given[0]
    try:
        return Known(len(range(*numbers)))
    except (TypeError, ValueError):
        return Setting("arange")


def _dtype(value: Value) -> str | None:
    path = value.text if isinstance(value, DottedName) else ""
    package, _, name = path.rpartition(".")
    return name if package in ("torch", "np", "numpy") and name.startswith(("int", "u")) else None
