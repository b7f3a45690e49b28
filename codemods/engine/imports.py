"""What files import, whether it is there, and whether it leads back; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from codemods.engine.bound import Unbound, bound, is_for_types
from codemods.engine.checkout import Checkout
from codemods.engine.sources import Refusal, SourceFile, Sources

MOST_FILES = 2000


@dataclass(frozen=True)
class Import:
    """One name that a statement imports; `name` is None for a module as a whole.

    `at_start`: the statement runs when its module is imported; `guarded`: in a `try`.
    """

    module: str
    name: str | None
    local: str
    at_start: bool
    line: int
    guarded: bool = False

    @property
    def key(self) -> tuple[str, str | None, bool]:
        return self.module, self.name, self.at_start


def of_the_package(checkout: Checkout, module: str) -> bool:
    """Whether a module's name is one of the package's own."""
    return module.startswith((".", f"{checkout.package_name}."))


def defines(sources: Sources, home: SourceFile, name: str) -> bool:
    """Whether a module has the name once it is imported."""
    found = bound(sources, home, name)
    if not isinstance(found, Unbound) or not found.nowhere:
        return True
    dynamic = home.tree is not None and any(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in home.tree.body
    )
    submodule = home.name.endswith("__init__.py") and sources.module(home, f".{name}") is not None
    return dynamic or submodule


def circle(
    sources: Sources, file: SourceFile, first: SourceFile, among: Container[str] | None = None
) -> list[str] | None:
    """The files on a way from `first` back to `file` by imports that run at the start.

    The way leads through files of the names in `among`, through any where that is None.
    """
    pending = [[first]]
    seen = {first.name}
    while pending and len(seen) < MOST_FILES:
        way = pending.pop()
        if way[-1].name == file.name:
            return [one.name for one in (file, *way)]
        for one in imports_of(way[-1]):
            if not one.at_start or not of_the_package(sources.checkout, one.module):
                continue
            for module in (one.module, f"{one.module}.{one.name}"):
                home = _module(sources, way[-1], module)
                if home is None or (among is not None and home.name not in among):
                    continue
                if home.name not in seen:
                    seen.add(home.name)
                    pending.append([*way, home])
    return None


def _module(sources: Sources, file: SourceFile, module: str) -> SourceFile | None:
    try:
        return sources.module(file, module)
    except Refusal:
        return None


def imports_of(file: SourceFile) -> Iterator[Import]:
    """All that a file imports at run time."""
    try:
        tree = file.tree
    except Refusal:
        return
    if tree is not None:
        yield from _of_statements(tree.body, at_start=True)


def _of_statements(
    body: Sequence[ast.stmt], *, at_start: bool, guarded: bool = False
) -> Iterator[Import]:
    for node in body:
        match node:
            case ast.Import():
                for alias in node.names:
                    local = alias.asname or alias.name
                    yield Import(alias.name, None, local, at_start, node.lineno, guarded)
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    if alias.name != "*":
                        local = alias.asname or alias.name
                        yield Import(module, alias.name, local, at_start, node.lineno, guarded)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _of_statements(node.body, at_start=False)
            case ast.If(test=test) if is_for_types(test):
                yield from _of_statements(node.orelse, at_start=at_start, guarded=guarded)
            case _:
                yield from _inside(node, at_start, guarded or isinstance(node, ast.Try))


def _inside(node: ast.stmt, at_start: bool, guarded: bool) -> Iterator[Import]:
    for part in ("body", "orelse", "finalbody"):
        yield from _of_statements(getattr(node, part, []), at_start=at_start, guarded=guarded)
    for handler in getattr(node, "handlers", []):
        yield from _of_statements(handler.body, at_start=at_start, guarded=guarded)
