"""The attributes that a class of the tree gives its instances, found without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from codemods.prove.subject import Side


def attributes(side: Side, package: str, relative: str, name: str) -> frozenset[str] | None:
    """Names of the class's own and its bases' attributes; None where not all are known.

    A base of another package is taken to give none.
    """
    found: set[str] = set()
    pending = [(relative, name)]
    seen: set[tuple[str, str]] = set()
    while pending:
        home, wanted = pending.pop()
        if (home, wanted) in seen:
            continue
        seen.add((home, wanted))
        tree = side.parse(home)
        if tree is None:
            return None
        owner = _class(tree, wanted)
        if owner is not None:
            found |= _given(owner)
            bases = [ast.unparse(base).partition("[")[0] for base in owner.bases]
            pending += [(home, base) for base in bases]
        elif (other := _imported_from(tree, wanted, package, home)) is not None:
            pending.append(other)
        elif (home, wanted) == (relative, name):
            return None
    return frozenset(found)


def set_from_outside(side: Side, relative: str, holder: str) -> frozenset[str]:
    """Attributes that a module sets on what it calls `self.HOLDER`."""
    tree = side.parse(relative)
    return frozenset(
        node.attr
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == f"self.{holder}"
    )


def compared_with_none(side: Side, relative: str) -> frozenset[str]:
    """Last parts of the names that a module asks `is None` of, or of what a local name holds."""
    tree = side.parse(relative)
    nodes = list(ast.walk(tree)) if tree is not None else []
    asked = {
        _last(node.left)
        for node in nodes
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    }
    held = {
        _last(node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id in asked for one in node.targets)
    }
    return frozenset(filter(None, asked | held))


# Every proof of a tree asks for the same few classes, and `parse` keeps the modules.
@lru_cache(maxsize=64)
def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return next((node for node in classes if node.name == name), None)


@lru_cache(maxsize=64)
def _given(owner: ast.ClassDef) -> frozenset[str]:
    return frozenset(_names_given(owner))


def _names_given(owner: ast.ClassDef) -> Iterator[str]:
    for node in owner.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
    for inner in ast.walk(owner):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            yield inner.attr


def _imported_from(tree: ast.Module, name: str, package: str, home: str) -> tuple[str, str] | None:
    """The file of the package that a name is imported from, and its name there."""
    here = [*package.split("."), *home.split("/")[:-1]]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name) != name:
                continue
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module.startswith(f"{package}."):
                return module.removeprefix(f"{package}.").replace(".", "/") + ".py", alias.name
    return None


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) > 1:
        name = node.args[1]
        return str(name.value) if isinstance(name, ast.Constant) else ""
    return node.id if isinstance(node, ast.Name) else ""
