"""Triton's `jit` and a kernel's parameters, as a definition's own scopes name them.

Nothing is executed. A name that the source alone does not explain, such as one that two branches
bind differently, is not taken for Triton's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import libcst as cst

from codemods.transforms import names

_JIT = frozenset({"triton.jit", "triton.runtime.jit.jit"})


class Scope(NamedTuple):
    """What names mean where a kernel is defined.

    `origins` has the full dotted name of what a name is imported as, or is another name of;
    `constants` has the values of names that are assigned once.
    """

    origins: Mapping[str, str]
    constants: Mapping[str, cst.BaseExpression]

    @classmethod
    def of(cls, module: cst.Module, around: Sequence[cst.FunctionDef | cst.ClassDef] = ()) -> Scope:
        """The scope of a module, or of a definition in it with `around` about it, outermost first.

        As in Python, a class's names are seen by what is right in it and not by its methods.
        """
        scope = _of_module(module)
        for node in around:
            if isinstance(node, cst.FunctionDef) or node is around[-1]:
                scope = scope._inside(node)
        return scope

    def is_jit(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is Triton's `jit`, called or bare."""
        return self._origin(node.func if isinstance(node, cst.Call) else node) in _JIT

    def is_constexpr(self, parameter: cst.Param) -> bool:
        """Whether a parameter is a compile-time constant: each of its values is its own kernel.

        Triton's own test: whether the annotation as text has `constexpr` in it, wherever
        (triton/runtime/jit.py, `KernelParam.is_constexpr`).
        """
        if parameter.annotation is None:
            return False
        annotation = parameter.annotation.annotation
        if "constexpr" in _text(annotation):
            return True
        used = {node.value for node in names.descend(annotation) if isinstance(node, cst.Name)}
        return any(
            "constexpr" in self.origins.get(name, "").rpartition(".")[2]
            or (name in self.constants and "constexpr" in _text(self.constants[name]))
            for name in used
        )

    def _origin(self, node: cst.BaseExpression) -> str | None:
        first, dot, rest = (names.dotted(node) or "").partition(".")
        known = self.origins.get(first)
        return None if known is None else f"{known}{dot}{rest}"

    def _inside(self, node: cst.Module | cst.FunctionDef | cst.ClassDef) -> Scope:
        """The scope inside a definition: what it binds itself hides what is bound outside."""
        body = node if isinstance(node, cst.Module) else node.body
        parts: list[cst.CSTNode] = [body]
        if isinstance(node, cst.FunctionDef):
            parts.append(node.params)
        bound = Counter(name for one in names.descend(parts) for name in names.bound_by(one))
        imported = names.imports(body)
        assigned = [*names.assignments(body)]
        outer = {name: one for name, one in self.origins.items() if name not in bound}
        meanings: dict[str, set[str]] = {}
        for one in imported:
            meanings.setdefault(one.local, set()).add(_imported(one))
        for name, value in assigned:
            if not _is_none(value):
                known = Scope({**outer, **_sure(meanings)}, {})
                meanings.setdefault(name, set()).add(known._origin(value) or "")
        explained = Counter([*(one.local for one in imported), *(name for name, _ in assigned)])
        for name in bound - explained:  # a definition, a loop, an argument
            meanings.setdefault(name, set()).add("")
        constants = {name: one for name, one in self.constants.items() if name not in bound}
        constants |= {name: value for name, value in assigned if bound[name] == 1}
        return Scope({**outer, **_sure(meanings)}, constants)


def parameters(kernel: cst.FunctionDef) -> Iterator[cst.Param]:
    """A kernel's parameters in the order in which Triton counts them."""
    yield from kernel.params.posonly_params
    yield from kernel.params.params
    yield from kernel.params.kwonly_params


@lru_cache(maxsize=128)
def _of_module(module: cst.Module) -> Scope:
    # Where nothing in sight binds the name, it comes with a star import.
    return Scope({"triton": "triton"}, {})._inside(module)


def _sure(meanings: Mapping[str, set[str]]) -> dict[str, str]:
    """The names of which every binding means the same."""
    return {name: one for name, (one, *other) in meanings.items() if one and not other}


def _imported(one: names.Imported) -> str:
    """The full name of what an import binds; a package's own way to Triton is Triton."""
    if one.name is None:
        return one.module
    if one.name == "triton" or (one.name == "jit" and "triton" in one.module):
        return "triton.jit" if one.name == "jit" else "triton"
    return f"{one.module}.{one.name}"


def _is_none(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Name) and value.value == "None"


def _text(node: cst.BaseExpression) -> str:
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        return str(node.evaluated_value)
    return cst.Module([]).code_for_node(node)
