"""What a Triton kernel stores, evaluated from its syntax tree on small numbers; nothing is run.

Only what slot-mapping kernels use of Triton's language is known, and all else is unreadable.
A block is a tuple of its lanes. None is a value that is not known, as a masked load leaves it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

# Above these nothing is evaluated: such code is not what this is for.
MOST_PROGRAMS = 16
MOST_STATEMENTS = 500
MOST_LANES = 4096
LARGEST = 1 << 40
MOST_VALUES = 1_000_000


class Unreadable(Exception):
    """The code has something that is not evaluated."""


class NotCompiled(Exception):
    """No Triton compiles the body; the text says what was expected and what was found."""


class _Returned(Exception):
    pass


@dataclass(eq=False)
class Array:
    """A tensor on the device: its values by their place in memory."""

    values: dict[int, int]
    shape: tuple[int, ...]


@dataclass(eq=False)
class Pointer:
    """A place in an array."""

    array: Array
    place: int = 0

    def __add__(self, further: int) -> Pointer:
        return Pointer(self.array, self.place + further)


@dataclass(eq=False)
class Budget:
    """What is still evaluated, in values of lanes: all launches of a tree spend the same one."""

    left: int = MOST_VALUES

    def spend(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise Unreadable


def evaluate(
    kernel: ast.FunctionDef, given: Mapping[str, Any], programs: int, lanes: int, budget: Budget
) -> None:
    """Evaluate the programs of a launch, so that the arrays hold what the kernel stores.

    Of each block only the first `lanes` are looked at: nothing that is known here mixes lanes.
    Raises Unreadable and NotCompiled.
    """
    if programs > MOST_PROGRAMS:
        raise Unreadable
    unannotated = {one.arg for one in kernel.args.args if one.annotation is None}
    for number in range(programs):
        scope = {k: Pointer(v) if isinstance(v, Array) else v for k, v in given.items()}
        try:
            _Program(scope, number, programs, lanes, budget, {*unannotated}).block(kernel.body)
        except _Returned:
            continue
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise Unreadable from None


def unreadable() -> NoReturn:
    """Raise Unreadable, in an expression."""
    raise Unreadable


def _each(work: Callable[..., Any], *operands: Any) -> Any:
    """Apply `work` lane by lane; a scalar is the same in every lane."""
    lengths = {len(one) for one in operands if isinstance(one, tuple)}
    if not lengths:
        return work(*operands)
    (length,) = lengths
    columns = (one if isinstance(one, tuple) else (one,) * length for one in operands)
    return tuple(map(work, *columns))


def _of_known(work: Callable[..., Any], *operands: Any) -> Any:
    """As `_each`; what comes of a value that is not known is not known."""
    if any(one is None or (isinstance(one, tuple) and None in one) for one in operands):
        return _each(lambda *lane: None if None in lane else work(*lane), *operands)
    return _each(work, *operands)


_WORK: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: lambda a, b: a * b if max(abs(a), abs(b)) < LARGEST else unreadable(),
    # Triton divides as C does and Python rounds down: they agree on numbers from 0 on.
    ast.FloorDiv: lambda a, b: a // b if a >= 0 < b else unreadable(),
    ast.Mod: lambda a, b: a % b if a >= 0 < b else unreadable(),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "tl.minimum": min,
    "tl.maximum": max,
    "tl.where": lambda test, yes, no: yes if test else no,
    # As with //, below 0 the two round apart.
    "tl.cdiv": lambda a, b: -(-a // b) if a >= 0 < b else unreadable(),
}
_CASTS = ("int32", "int64")


@dataclass(eq=False)
class _Program:
    """One program of a launch; `varying` are the parameters that are no constants."""

    scope: dict[str, Any]
    number: int
    programs: int
    lanes: int
    budget: Budget
    varying: set[str]
    own: set[str] = field(default_factory=set)
    statements: int = 0

    def block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            self.statements += 1
            if self.statements > MOST_STATEMENTS:
                raise Unreadable
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(name)]):
                self._assign(name, self.value(node.value), self._is_own(node.value))
            case ast.AugAssign(target=ast.Name(name) as target):
                value = self._operation(node.op, target, node.value)
                self._assign(name, value, self._is_own(target) or self._is_own(node.value))
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr():
                self.value(node.value)
            case ast.If():
                self._if(node)
            case ast.For(target=ast.Name(name), iter=ast.Call(func=ast.Name("range"), args=ends)):
                for turn in range(*map(self._number, ends)):
                    self._assign(name, turn, False)
                    self.block(node.body)
            case ast.Return(value=None):
                raise _Returned
            case _:
                raise Unreadable

    def _if(self, node: ast.If) -> None:
        before, may_be_constant = dict(self.scope), not self._is_own(node.test)
        self.block(node.body if self._number(node.test) else node.orelse)
        if may_be_constant:
            return  # Triton leaves the other branch out
        for name, value in before.items():
            if isinstance(value, tuple) != isinstance(self.scope[name], tuple):
                raise NotCompiled(
                    f"expected a variable to keep its shape, found {name}, which is a block on one "
                    "way through an if and a number on the other: Triton does not compile the "
                    "kernel"
                )

    def _is_own(self, node: ast.expr) -> bool:
        """Whether a value is the program's own: its number, what it loads, what comes of them."""
        return any(
            one.id in self.own if isinstance(one, ast.Name) else one.attr in ("program_id", "load")
            for one in ast.walk(node)
            if isinstance(one, (ast.Name, ast.Attribute))
        )

    def _assign(self, name: str, value: Any, is_own: bool) -> None:
        self.scope[name] = value
        self.varying.discard(name)
        (self.own.add if is_own else self.own.discard)(name)

    def _operation(self, kind: ast.AST, left: ast.expr, right: ast.expr) -> Any:
        return _of_known(_WORK[type(kind)], self.value(left), self.value(right))

    def _number(self, node: ast.expr) -> int:
        found = self.value(node)
        return found if isinstance(found, int) else unreadable()

    def value(self, node: ast.expr) -> Any:
        found = self._value(node)
        self.budget.spend(len(found) if isinstance(found, tuple) else 1)
        return found

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int()):
                return node.value
            case ast.Name(name) if name in self.scope:
                return self.scope[name]
            case ast.BinOp():
                return self._operation(node.op, node.left, node.right)
            case ast.Compare(ops=[comparison], comparators=[right]):
                return self._operation(comparison, node.left, right)
            case ast.Call(func=ast.Attribute(base, "to"), args=[ast.Attribute(_, kind)]):
                return self.value(base) if kind in _CASTS else unreadable()
            case ast.Call(func=ast.Attribute(ast.Name("tl"), name)):
                given = [self.value(one) for one in node.args]
                named = {one.arg or "": self.value(one.value) for one in node.keywords}
                return self._call(node, f"tl.{name}", given, named)
        raise Unreadable

    def _call(self, node: ast.Call, name: str, given: list[Any], named: dict[str, Any]) -> Any:
        match name, given:
            case "tl.load", _:
                return _load(*given, **named)
            case "tl.store", _:
                return _store(*given, **named)
            case "tl.program_id", [0] if not named:
                return self.number
            case "tl.num_programs", [0] if not named:
                return self.programs
            case "tl.arange", [int(first), int(end)] if not named and end - first <= MOST_LANES:
                self._require_constants(node)
                return tuple(range(first, end)[: self.lanes])
        if name not in _FUNCTIONS:
            _require_known(name)
        return _of_known(_FUNCTIONS[name], *given, **named)

    def _require_constants(self, arange: ast.Call) -> None:
        for end in arange.args:
            # A plain 1 is made a constant.
            if isinstance(end, ast.Name) and end.id in self.varying and self.scope[end.id] != 1:
                raise NotCompiled(
                    f"expected the ends of tl.arange to be constants, found {end.id}, a parameter "
                    "that is no tl.constexpr: Triton does not compile the kernel"
                )


def _require_known(name: str) -> None:
    from codemods.recipes.slot_mapping.facts import triton_language

    found = name.partition(".")[2]
    if not found.startswith("_") and found not in triton_language.NAMES:
        raise NotCompiled(
            f"expected functions of Triton, found {name}, which Triton {triton_language.RELEASES} "
            "does not have: Triton does not compile the kernel"
        )


def _load(source: Any, mask: Any = True, other: Any = None) -> Any:
    def one(pointer: Pointer, wanted: bool | None, instead: Any) -> Any:
        if wanted is None:
            return None
        return pointer.array.values.get(pointer.place) if wanted else instead

    return _each(one, source, mask, other)


def _store(target: Any, stored: Any, mask: Any = True) -> None:
    def one(pointer: Pointer | None, value: Any, wanted: bool | None) -> None:
        if wanted and pointer is not None and value is not None:
            pointer.array.values[pointer.place] = value
        elif wanted is not False:
            raise Unreadable

    _each(one, target, stored, mask)
