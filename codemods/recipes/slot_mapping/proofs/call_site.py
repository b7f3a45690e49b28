"""How the model runner calls compute_slot_mapping: the dtypes and offsets of what it passes.

Read from the tree's own runner, never assumed, because Triton's key holds each pointer's dtype and
whether it is 16-byte aligned. A runner passes views of two buffers of its own, made once in its
`__init__`; a view that starts at 0 has the buffer's alignment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from codemods.prove.subject import Side
from codemods.recipes.slot_mapping.proofs.modules import MODEL_RUNNER

LAUNCHER = "compute_slot_mapping"
DTYPES = frozenset({"int32", "int64", "int16", "int8", "uint8"})


@dataclass(frozen=True)
class Passed:
    """One tensor argument: its dtype and the first element of the buffer it starts at.

    `offset` is None where the view starts at an element known only at run time.
    """

    dtype: str
    offset: int | None = 0


@dataclass(frozen=True)
class CallSite:
    """One call of compute_slot_mapping; `line` is None for the documented shape."""

    query_start_loc: Passed
    positions: Passed
    line: int | None = None


# The kernel's own parameter comments say so in every release that has it (0.19.0 and later).
DOCUMENTED = CallSite(Passed("int32"), Passed("int64"))


def call_sites(side: Side) -> tuple[CallSite, ...]:
    """The runner's calls; the documented one where there is no runner or none can be read."""
    tree = side.parse(MODEL_RUNNER)
    if tree is None:
        return (DOCUMENTED,)
    return _sites(tree) or (DOCUMENTED,)


@lru_cache(maxsize=4)
def _sites(tree: ast.Module) -> tuple[CallSite, ...]:
    """Each proof asks for them again, and the runner is vLLM's largest module."""
    return tuple(dict.fromkeys(_read_calls(tree)))


def _read_calls(tree: ast.Module) -> Iterator[CallSite]:
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for method in (node for node in owner.body if isinstance(node, ast.FunctionDef)):
            for call in _launches(method):
                site = _read_call(call, method, owner)
                if site is not None:
                    yield site


def _launches(method: ast.FunctionDef) -> Iterator[ast.Call]:
    for node in ast.walk(method):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == LAUNCHER
        ):
            yield node


def _read_call(call: ast.Call, method: ast.FunctionDef, owner: ast.ClassDef) -> CallSite | None:
    arguments: dict[str, ast.expr] = dict(
        zip(("num_reqs", "query_start_loc", "positions"), call.args, strict=False)
    )
    arguments.update({word.arg: word.value for word in call.keywords if word.arg})
    passed = [
        _read_argument(arguments[name], method, owner) if name in arguments else None
        for name in ("query_start_loc", "positions")
    ]
    if passed[0] is None or passed[1] is None:
        return None
    return CallSite(passed[0], passed[1], call.lineno)


def _read_argument(value: ast.expr, method: ast.FunctionDef, owner: ast.ClassDef) -> Passed | None:
    value = _resolved(value, method)
    offset: int | None = 0
    if isinstance(value, ast.Subscript):
        offset = _start(value.slice)
        value = _resolved(value.value, method)
    if isinstance(value, ast.Attribute) and value.attr in ("gpu", "device_tensor"):
        value = value.value
    dtype = _dtype_of(value, method, owner)
    return None if dtype is None else Passed(dtype, offset)


def _resolved(value: ast.expr, method: ast.FunctionDef) -> ast.expr:
    """A local name's value where the method gives it just one."""
    if not isinstance(value, ast.Name):
        return value
    given = [
        node.value
        for node in ast.walk(method)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
    ]
    return given[0] if len(given) == 1 else value


def _start(index: ast.expr) -> int | None:
    if not isinstance(index, ast.Slice):
        return None
    if index.lower is None:
        return 0
    if isinstance(index.lower, ast.Constant) and isinstance(index.lower.value, int):
        return index.lower.value
    return None


def _dtype_of(value: ast.expr, method: ast.FunctionDef, owner: ast.ClassDef) -> str | None:
    if isinstance(value, ast.Call):
        return _dtype_keyword(value)
    if not (isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name)):
        return None
    made = [
        node.value
        for node in ast.walk(owner)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and any(
            isinstance(target, ast.Attribute) and target.attr == value.attr
            for target in (node.targets if isinstance(node, ast.Assign) else (node.target,))
        )
    ]
    dtypes = {_dtype_keyword(maker) for maker in made if isinstance(maker, ast.Call)} - {None}
    return dtypes.pop() if len(dtypes) == 1 else None


def _dtype_keyword(call: ast.Call) -> str | None:
    for word in call.keywords:
        if word.arg == "dtype" and isinstance(word.value, ast.Attribute):
            return word.value.attr if word.value.attr in DTYPES else None
    return None
