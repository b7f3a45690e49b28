"""What a name of a module is bound to once the module has been imported, or why it is not.

`resolve` lists every definition that a name may have; this finds the one that it has when the code
runs. A binding does not count when only type checkers see it, when an exception skips it, or when a
later statement replaces it. Nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.engine.sources import SourceFile, Sources
from codemods.transforms.names import Imported


@dataclass(frozen=True)
class Bound:
    """A function, a class or another value, and the file that has it."""

    file: SourceFile
    node: ast.AST


@dataclass(frozen=True)
class Unbound:
    """Why a name is not bound: a sentence's part that says what was found.

    `nowhere` is true where no statement of the module binds it at all.
    """

    why: str
    line: int | None = None
    nowhere: bool = False


def bound(sources: Sources, file: SourceFile, path: str) -> Bound | Unbound:
    """What a dotted name of the module means at run time."""
    return _Search(sources, set()).named(file, path)


def bound_by_import(
    sources: Sources, file: SourceFile, name: Imported, rest: str, line: int | None = None
) -> Bound | Unbound:
    """What `local.REST` means, where `local` is what an import in `file` binds."""
    return _Search(sources, set()).imported(file, name, rest, line)


@dataclass(frozen=True)
class _Binding:
    """One statement that binds a name; `sure` where it runs in any case."""

    node: ast.stmt
    value: ast.AST | Imported
    sure: bool
    for_types: bool


@dataclass(frozen=True)
class _Search:
    sources: Sources
    seen: set[tuple[str, str]]

    def named(self, file: SourceFile, path: str) -> Bound | Unbound:
        if (file.name, path) in self.seen:
            return Unbound(f"{file.name} leads back to itself")
        self.seen.add((file.name, path))
        if file.tree is None:
            return Unbound(f"{file.name} does not parse with the running Python")
        first, _, rest = path.partition(".")
        every = [*_bindings(file.tree.body, first, sure=True, for_types=False)]
        found = [one for one in every if not one.for_types]
        if not found:
            return self._from_a_star(file, path, every)
        last = found[-1]
        if not last.sure:
            return Unbound(
                f"line {last.node.lineno} of {file.name} binds {first} only in some cases",
                last.node.lineno,
            )
        return self._value(file, last, rest)

    def _from_a_star(
        self, file: SourceFile, path: str, for_types: Sequence[_Binding]
    ) -> Bound | Unbound:
        assert file.tree is not None
        for node in reversed(file.tree.body):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                home = self.sources.module(file, "." * node.level + (node.module or ""))
                found = self.named(home, path) if home is not None else None
                if isinstance(found, Bound):
                    return found
        if for_types:
            line = for_types[0].node.lineno
            return Unbound(f"line {line} of {file.name} imports it for type checkers alone", line)
        return Unbound(f"{file.name} does not bind it", nowhere=True)

    def _value(self, file: SourceFile, binding: _Binding, rest: str) -> Bound | Unbound:
        line = binding.node.lineno
        if isinstance(binding.value, Imported):
            return self.imported(file, binding.value, rest, line)
        alias = _dotted(binding.value)
        if alias:
            return self.named(file, f"{alias}.{rest}" if rest else alias)
        if rest:
            return Unbound(f"line {line} of {file.name} binds it to something else", line)
        return Bound(file, binding.value)

    def imported(
        self, file: SourceFile, name: Imported, rest: str, line: int | None
    ) -> Bound | Unbound:
        module, last = name.origin(rest)
        home = self.sources.module(file, module)
        if home is None:
            return Unbound(f"it is imported from {module}, which is not in this package", line)
        found = self.named(home, last)
        if isinstance(found, Unbound) and found.nowhere:
            return Unbound(f"it is imported from {module}, which does not define it", line)
        return found


def _bindings(
    body: Sequence[ast.stmt], name: str, *, sure: bool, for_types: bool
) -> Iterator[_Binding]:
    """The statements of a scope that bind a name, in source order."""
    for node in body:
        for value in _bound_values(node, name):
            yield _Binding(node, value, sure, for_types)
        match node:
            case ast.If():
                for_checkers = is_for_types(node.test)
                yield from _bindings(
                    node.body,
                    name,
                    sure=sure and _is_true(node.test),
                    for_types=for_types or for_checkers,
                )
                yield from _bindings(
                    node.orelse, name, sure=sure and for_checkers, for_types=for_types
                )
            case ast.Try():
                kept = sure and all(_ends_in_raise(handler.body) for handler in node.handlers)
                yield from _bindings(node.body, name, sure=kept, for_types=for_types)
                for handler in node.handlers:
                    if not _ends_in_raise(handler.body):
                        yield from _bindings(handler.body, name, sure=False, for_types=for_types)
                yield from _bindings(node.orelse, name, sure=kept, for_types=for_types)
                yield from _bindings(node.finalbody, name, sure=sure, for_types=for_types)
            case ast.With():
                yield from _bindings(node.body, name, sure=sure, for_types=for_types)
            case ast.For() | ast.While():
                yield from _bindings(node.body, name, sure=False, for_types=for_types)


def _bound_values(node: ast.stmt, name: str) -> Iterator[ast.AST | Imported]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            if node.name == name:
                yield node
        case ast.ImportFrom() | ast.Import():
            yield from (one for one in imports(node) if one.local == name)
        case ast.Assign():
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield node.value
                elif name in _names_in(target):
                    yield ast.Constant(None)
        case ast.AnnAssign(value=ast.expr()):
            if isinstance(node.target, ast.Name) and node.target.id == name:
                yield node.value or ast.Constant(None)
        case ast.AugAssign() | ast.For():
            if name in _names_in(node.target):
                yield ast.Constant(None)
        case ast.Delete():
            if any(name in _names_in(target) for target in node.targets):
                yield ast.Constant(None)


def imports(node: ast.Import | ast.ImportFrom) -> Iterator[Imported]:
    """What an import binds."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield Imported(alias.asname or alias.name, module, alias.name)
        else:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            yield Imported(alias.asname or name, name, None)


def _names_in(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def is_for_types(test: ast.expr) -> bool:
    """`TYPE_CHECKING` or `typing.TYPE_CHECKING`."""
    return _dotted(test).rpartition(".")[2] == "TYPE_CHECKING"


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _ends_in_raise(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise)


def _dotted(node: Any) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""
