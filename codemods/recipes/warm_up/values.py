"""What is known of a value in a method that is followed without being run.

A value is known, or is unknown: a setting, which an engine keeps for its life, or varying, which
differs from one batch to the next.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codemods.engine.sources import SourceFile
from codemods.transforms.names import Imported


@dataclass(frozen=True)
class Known:
    """A constant."""

    value: Any

    @property
    def text(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Setting:
    """Unknown, and the same for an engine's life; two of the same text are equal."""

    text: str


@dataclass(frozen=True)
class Varying:
    """Unknown, and another with every batch; `is_truth` where it is True or False."""

    text: str
    is_truth: bool = False


@dataclass(frozen=True)
class Tensor:
    """A one-dimensional tensor or a view of one; None is what is not known."""

    text: str
    length: Value
    dtype: str | None = None
    device: Value | None = None
    start: Value = Known(0)
    largest: Value | None = None


@dataclass(frozen=True)
class Items:
    """A list or tuple; `whole` is false where it means one with any number of such items."""

    items: tuple[Value, ...]
    whole: bool = True

    @property
    def text(self) -> str:
        return f"({', '.join(item.text for item in self.items)})"


@dataclass(frozen=True)
class DottedName:
    """A dotted name of a module, or of what an import inside a function binds."""

    file: SourceFile
    text: str
    imported: Imported | None = None


@dataclass(eq=False)
class Function:
    """A function that can be followed; `first` is what it is bound to."""

    file: SourceFile
    node: ast.FunctionDef | ast.Lambda
    scope: Mapping[str, Value] = field(default_factory=dict)
    first: Value | None = None
    owner: int = 0

    @property
    def text(self) -> str:
        return getattr(self.node, "name", "lambda")


@dataclass(eq=False)
class Instance:
    """An object of a class that is followed, with the attributes that were set on the way."""

    text: str
    classes: tuple[tuple[SourceFile, ast.ClassDef], ...]
    attributes: dict[str, Value] = field(default_factory=dict)

    def method(self, name: str, after: int = -1) -> Function | None:
        """The method that a call reaches, `after` one of the classes for `super()`."""
        for place, (file, owner) in enumerate(self.classes):
            if place <= after:
                continue
            for node in reversed(owner.body):
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    return Function(file, node, first=self, owner=place)
        return None


Value = Known | Setting | Varying | Tensor | Items | DottedName | Function | Instance
Arguments = tuple[tuple[Value, ...], Mapping[str, Value]]

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: int(math.pow(a, b)),
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}
_LARGEST = 1 << 40


def unknown(text: str, *parts: Value) -> Value:
    """What comes of values in a way that is not followed."""
    varies = any(
        isinstance(part, (Varying, Tensor))
        or (isinstance(part, Items) and isinstance(unknown("", *part.items), Varying))
        for part in parts
    )
    return Varying(text) if varies else Setting(text)


def arithmetic(left: Value, operator: ast.operator, right: Value) -> Value:
    text = f"{left.text} {type(operator).__name__} {right.text}"
    if isinstance(left, Tensor):
        return Tensor(text, left.length, left.dtype, left.device)
    if isinstance(right, Tensor):
        return Tensor(text, right.length, right.dtype, right.device)
    if isinstance(left, Items) and isinstance(right, Items) and isinstance(operator, ast.Add):
        return Items(left.items + right.items, left.whole and right.whole)
    work = _ARITHMETIC.get(type(operator))
    if work is not None and _is_number(left) and _is_number(right):
        try:
            return Known(work(left.value, right.value))  # type: ignore[union-attr]
        except (ArithmeticError, ValueError):
            return Setting(text)
    return unknown(text, left, right)


def _is_number(value: Value) -> bool:
    return (
        isinstance(value, Known)
        and isinstance(value.value, (int, float))
        and abs(value.value) < _LARGEST
    )


def comparison(left: Value, operator: ast.cmpop, right: Value) -> Value:
    if isinstance(operator, (ast.In, ast.NotIn)):
        return _membership(left, operator, right)
    if isinstance(left, Known) and isinstance(right, Known):
        try:
            return Known(_COMPARISONS[type(operator)](left.value, right.value))
        except TypeError:
            return Setting(f"{left.text} {type(operator).__name__} {right.text}")
    if Known(None) in (left, right) and not isinstance(left, (Setting, Varying, DottedName)):
        other = right if left == Known(None) else left
        if not isinstance(other, (Setting, Varying, DottedName)):
            return Known(isinstance(operator, (ast.IsNot, ast.NotEq)))
    return _unknown_truth(f"{left.text} {type(operator).__name__} {right.text}", left, right)


def _membership(left: Value, operator: ast.cmpop, right: Value) -> Value:
    inside = isinstance(operator, ast.In)
    if isinstance(right, Items) and right.whole:
        if not right.items:
            return Known(not inside)
        if all(isinstance(one, Known) for one in (left, *right.items)):
            return Known((left in right.items) is inside)
    return _unknown_truth(f"{left.text} {type(operator).__name__} {right.text}", left, right)


def _unknown_truth(text: str, *parts: Value) -> Value:
    found = unknown(text, *parts)
    return Varying(text, is_truth=True) if isinstance(found, Varying) else found
