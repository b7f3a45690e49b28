"""What the rewrite imports is there, and importing it leads nowhere in a circle.

The other proofs load a few modules of the tree and stand in for the rest, so they would not notice.
Imports are followed in the tree's own sources; nothing is run. Only imports that the rewrite adds
are looked at, or in a tree that is fixed already those between the recipe's own files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codemods.engine.bound import Unbound, bound, is_for_types
from codemods.engine.checkout import Checkout
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.prove.proof import Options, Proof, failed, passed
from codemods.prove.subject import Subject

NAME = "imports"
MOST_FILES = 2000


@dataclass(frozen=True)
class Import:
    """One name that a statement imports; `name` is None for a module as a whole.

    `at_start`: the statement runs when its module is imported.
    """

    module: str
    name: str | None
    local: str
    at_start: bool
    line: int

    @property
    def key(self) -> tuple[str, str | None, bool]:
        return self.module, self.name, self.at_start


def prove(subject: Subject, _: Options) -> Proof:
    sources = Sources(subject.after.checkout)
    complaints: list[str] = []
    looked_at = 0
    for file, found in _added(subject, sources):
        looked_at += len(found)
        for one in found:
            complaints += _complaints(sources, file, one)
    figures = {"files": len(subject.plan.named_files), "imports": looked_at}
    if complaints:
        return failed(NAME, "; ".join(dict.fromkeys(complaints)), **figures)
    return passed(
        NAME, "every module and name that the rewrite imports is there, and none in a circle",
        **figures,
    )  # fmt: skip


def _added(subject: Subject, sources: Sources) -> Iterator[tuple[SourceFile, list[Import]]]:
    """The imports that each changed file has and had not, or that tie the recipe's files."""
    package = subject.after.name("x").removesuffix("x")
    before = Sources(subject.checkout) if subject.plan.changes else None
    named = {outcome.file for outcome in subject.plan.outcomes if outcome.file}
    names = named | {change.path for change in subject.plan.changes}
    for name in sorted(names):
        if not name.startswith(package) or not name.endswith(".py"):
            continue
        file = _read(sources, name.removeprefix(package))
        if file is None:
            continue
        found = [*_imports(file)]
        if before is not None:
            earlier = _read(before, name.removeprefix(package))
            old = {one.key for one in _imports(earlier)} if earlier is not None else set()
            yield file, [one for one in found if one.key not in old]
        else:
            homes = {one: sources.module(file, one.module) for one in found}
            yield file, [one for one, home in homes.items() if home and home.name in names]


def _read(sources: Sources, relative: str) -> SourceFile | None:
    try:
        return sources.read(relative)
    except Refusal:
        return None


def _complaints(sources: Sources, file: SourceFile, one: Import) -> Iterator[str]:
    if not _of_the_package(sources.checkout, one.module):
        return
    where = f"{file.name}:{one.line}"
    home = sources.module(file, one.module)
    if home is None:
        yield f"{where} imports from {one.module}, which the tree does not have"
        return
    if one.name is not None and not _has(sources, home, one.name):
        yield f"{where} imports {one.name} from {one.module}, which does not define it"
    if one.at_start:
        circle = _circle(sources, file, home)
        if circle is not None:
            yield f"{where} imports in a circle: {' → '.join(circle)}"
    whole = _whole(sources, home, one)
    if whole is None:
        return
    for name in _used_of(file, one.local):
        if not _has(sources, whole, name):
            yield f"{where} imports {whole.name}, which does not define {name}"


def _of_the_package(checkout: Checkout, module: str) -> bool:
    return module.startswith((".", f"{checkout.package_name}."))


def _whole(sources: Sources, home: SourceFile, one: Import) -> SourceFile | None:
    """The module that the imported name means; None where it is another thing."""
    if one.name is None:
        return home
    is_its_own = isinstance(bound(sources, home, one.name), Unbound)
    return sources.module(home, f".{one.name}") if is_its_own else None


def _has(sources: Sources, home: SourceFile, name: str) -> bool:
    found = bound(sources, home, name)
    if not isinstance(found, Unbound) or not found.nowhere:
        return True
    dynamic = home.tree is not None and any(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in home.tree.body
    )
    submodule = home.name.endswith("__init__.py") and sources.module(home, f".{name}") is not None
    return dynamic or submodule


def _used_of(file: SourceFile, local: str) -> Iterator[str]:
    """Attributes that a file asks of a module it has imported under a name of its own."""
    for node in ast.walk(file.tree) if file.tree is not None else ():
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == local
        ):
            yield node.attr


def _circle(sources: Sources, file: SourceFile, first: SourceFile) -> list[str] | None:
    """The files on a way from `first` back to `file` by imports that run at the start."""
    pending = [[first]]
    seen = {first.name}
    while pending and len(seen) < MOST_FILES:
        way = pending.pop()
        if way[-1].name == file.name:
            return [one.name for one in (file, *way)]
        for one in _imports(way[-1]):
            if not one.at_start or not _of_the_package(sources.checkout, one.module):
                continue
            for module in (one.module, f"{one.module}.{one.name}"):
                home = _module(sources, way[-1], module)
                if home is not None and home.name not in seen:
                    seen.add(home.name)
                    pending.append([*way, home])
    return None


def _module(sources: Sources, file: SourceFile, module: str) -> SourceFile | None:
    try:
        return sources.module(file, module)
    except Refusal:
        return None


def _imports(file: SourceFile) -> Iterator[Import]:
    try:
        tree = file.tree
    except Refusal:
        return
    if tree is not None:
        yield from _of_statements(tree.body, at_start=True)


def _of_statements(body: Sequence[ast.stmt], *, at_start: bool) -> Iterator[Import]:
    for node in body:
        match node:
            case ast.Import():
                for alias in node.names:
                    local = alias.asname or alias.name
                    yield Import(alias.name, None, local, at_start, node.lineno)
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    if alias.name != "*":
                        local = alias.asname or alias.name
                        yield Import(module, alias.name, local, at_start, node.lineno)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _of_statements(node.body, at_start=False)
            case ast.If(test=test) if is_for_types(test):
                yield from _of_statements(node.orelse, at_start=at_start)
            case _:
                yield from _inside(node, at_start)


def _inside(node: ast.stmt, at_start: bool) -> Iterator[Import]:
    for part in ("body", "orelse", "finalbody"):
        yield from _of_statements(getattr(node, part, []), at_start=at_start)
    for handler in getattr(node, "handlers", []):
        yield from _of_statements(handler.body, at_start=at_start)
