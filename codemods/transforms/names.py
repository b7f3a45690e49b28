"""What the names of a module are bound to, by its imports and definitions; nothing is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import NamedTuple

import libcst as cst


class Imported(NamedTuple):
    """One name bound by an import: `from MODULE import NAME as local`, or `import MODULE as local`.

    `module` keeps its leading dots; `name` is None for a plain `import`.
    """

    local: str
    module: str
    name: str | None

    def origin(self, rest: str = "") -> tuple[str, str]:
        """The module, and the name in it, that `local.REST` means."""
        module = self.module
        *inner, name = [part for part in (self.name, *rest.split(".")) if part] or [""]
        for part in inner:
            module += part if module.endswith(".") else f".{part}"
        if name:
            return module, name
        parent, _, name = module.rpartition(".")
        return parent, name


def dotted(node: cst.BaseExpression | None) -> str | None:
    """`a.b.c` of a chain of names, None for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def statements(body: cst.BaseSuite | cst.Module) -> tuple[cst.BaseStatement, ...]:
    """The statements of a suite written as an indented block; none for one written on one line."""
    if isinstance(body, (cst.Module, cst.IndentedBlock)):
        return tuple(body.body)
    return ()


@lru_cache(maxsize=512)
def walk(body: cst.BaseSuite | cst.Module) -> tuple[cst.BaseStatement, ...]:
    """A suite's statements and those of the if, try, with and loops in it, not of definitions."""
    found: list[cst.BaseStatement] = []
    for statement in statements(body):
        found.append(statement)
        if not isinstance(statement, cst.SimpleStatementLine):
            for suite in suites(statement):
                found += walk(suite)
    return tuple(found)


_ARMS = (cst.If, cst.Else, cst.ExceptHandler, cst.ExceptStarHandler, cst.Finally, cst.MatchCase)


def suites(statement: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    """The suites that a compound statement runs in its own scope, in source order."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return
    for child in children(statement):
        if isinstance(child, cst.BaseSuite):
            yield child
        elif isinstance(child, _ARMS):
            yield from suites(child)


@lru_cache(maxsize=512)
def imports(body: cst.BaseSuite | cst.Module) -> tuple[Imported, ...]:
    """Every name that the imports of a scope bind."""
    return tuple(_imports(body))


def run_time_imports(module: cst.Module) -> tuple[Imported, ...]:
    """What a module's imports bind when it runs, without those for the type checker."""
    body = [one for one in module.body if not _for_the_type_checker(one)]
    return imports(module.with_changes(body=body))


def _for_the_type_checker(statement: cst.BaseStatement) -> bool:
    path = dotted(statement.test) if isinstance(statement, cst.If) else None
    return path is not None and path.split(".")[-1] == "TYPE_CHECKING"


def _imports(body: cst.BaseSuite | cst.Module) -> Iterator[Imported]:
    for statement in walk(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            if isinstance(small, cst.ImportFrom):
                yield from _from_import(small)
            elif isinstance(small, cst.Import):
                for alias in small.names:
                    module = dotted(alias.name) or ""
                    # Without an alias, `import a.b` binds `a`.
                    bound = module if alias.asname else module.split(".")[0]
                    yield Imported(alias.evaluated_alias or bound, bound, None)


def _from_import(node: cst.ImportFrom) -> Iterator[Imported]:
    if isinstance(node.names, cst.ImportStar):
        return
    module = import_module(node)
    for alias in node.names:
        yield Imported(alias.evaluated_alias or alias.evaluated_name, module, alias.evaluated_name)


@lru_cache(maxsize=512)
def star_imports(body: cst.BaseSuite | cst.Module) -> tuple[str, ...]:
    """The modules that a scope imports everything from, leading dots kept."""
    return tuple(
        import_module(small)
        for statement in walk(body)
        if isinstance(statement, cst.SimpleStatementLine)
        for small in statement.body
        if isinstance(small, cst.ImportFrom) and isinstance(small.names, cst.ImportStar)
    )


def import_module(node: cst.ImportFrom) -> str:
    """The module a `from` import names, its leading dots kept."""
    return "." * len(node.relative) + (dotted(node.module) or "")


@lru_cache(maxsize=512)
def assignments(body: cst.BaseSuite | cst.Module) -> tuple[tuple[str, cst.BaseExpression], ...]:
    """`name = value` pairs of a scope, annotated ones too, in source order."""
    return tuple(_assignments(body))


def _assignments(body: cst.BaseSuite | cst.Module) -> Iterator[tuple[str, cst.BaseExpression]]:
    for statement in walk(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            if isinstance(small, cst.Assign):
                for target in small.targets:
                    if isinstance(target.target, cst.Name):
                        yield target.target.value, small.value
            elif (
                isinstance(small, cst.AnnAssign)
                and small.value is not None
                and isinstance(small.target, cst.Name)
            ):
                yield small.target.value, small.value


_WITH_TARGET = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)
_WITH_NAME = (cst.AsName, cst.Param, cst.FunctionDef, cst.ClassDef, cst.MatchAs, cst.MatchStar)


def bound_by(node: cst.CSTNode) -> Iterator[str]:
    """The names that a node binds in its scope, without those that nodes below it bind."""
    if isinstance(node, cst.ImportAlias):
        if node.asname is None:
            yield node.evaluated_name.partition(".")[0]
    elif isinstance(node, _WITH_TARGET):
        yield from _in_target(node.target)
    elif isinstance(node, _WITH_NAME) and node.name is not None:
        yield from _in_target(node.name)


def _in_target(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _in_target(element.value)


@lru_cache(maxsize=512)
def definitions(
    body: cst.BaseSuite | cst.Module,
) -> Mapping[str, tuple[cst.FunctionDef | cst.ClassDef, ...]]:
    """The functions and classes of a scope by name, behind `if` and `try` too."""
    found: dict[str, tuple[cst.FunctionDef | cst.ClassDef, ...]] = {}
    for statement in walk(body):
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            name = statement.name.value
            found[name] = (*found.get(name, ()), statement)
    return found


def functions(body: cst.BaseSuite | cst.Module, name: str) -> tuple[cst.FunctionDef, ...]:
    """Every definition of a function in a scope."""
    return tuple(one for one in definitions(body).get(name, ()) if isinstance(one, cst.FunctionDef))


def classes(body: cst.BaseSuite | cst.Module) -> Iterator[cst.ClassDef]:
    """The classes defined in a scope."""
    return (statement for statement in walk(body) if isinstance(statement, cst.ClassDef))


@lru_cache(maxsize=1024)
def calls(node: cst.CSTNode) -> tuple[cst.Call, ...]:
    """Calls that run when the node runs: not those inside nested definitions and lambdas."""
    return tuple(inner for inner in descend(node) if type(inner) is cst.Call)


def descend(
    nodes: cst.CSTNode | list[cst.CSTNode] | list[cst.BaseExpression],
) -> Iterator[cst.CSTNode]:
    """The nodes and all below them in source order, without the insides of nested definitions."""
    stack = [*reversed(nodes)] if isinstance(nodes, list) else [nodes]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in _SCOPES:
            stack.extend(reversed(children(node)))


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """A node's direct children in source order, white space and comments left out."""
    # CSTNode.children visits the node to collect them, and isinstance() asks an abstract class:
    # both cost several times as much as this, which is most of what looking at a tree costs.
    found: list[cst.CSTNode] = []
    for field in _code_fields(type(node)):
        value = getattr(node, field)
        kind = type(value)
        if kind is tuple or kind is list:
            found += value
        elif kind not in _NO_NODES:
            found.append(value)
    return found


_SCOPES = frozenset({cst.FunctionDef, cst.ClassDef, cst.Lambda})
_NO_NODES = frozenset({type(None), str, bool, cst.MaybeSentinel})


@cache
def _code_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in fields(kind)
        if "whitespace" not in field.name
        and not field.name.endswith(("_lines", "header", "footer"))
    )
