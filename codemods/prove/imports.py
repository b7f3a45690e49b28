"""What the rewrite imports is there, and importing it leads nowhere in a circle.

The other proofs load a few modules of the tree and stand in for the rest, so they would not notice.
Imports are followed in the tree's own sources; nothing is run. Only imports that the rewrite adds
are looked at, or in a tree that is fixed already those between the recipe's own files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.engine.bound import Unbound, bound
from codemods.engine.imports import Import, circle, defines, imports_of, of_the_package
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.prove.proof import Options, Proof, failed, passed
from codemods.prove.subject import Subject

NAME = "imports"


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
        found = [*imports_of(file)]
        if before is not None:
            earlier = _read(before, name.removeprefix(package))
            old = {one.key for one in imports_of(earlier)} if earlier is not None else set()
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
    if not of_the_package(sources.checkout, one.module):
        return
    where = f"{file.name}:{one.line}"
    home = sources.module(file, one.module)
    if home is None:
        yield f"{where} imports from {one.module}, which the tree does not have"
        return
    if one.name is not None and not defines(sources, home, one.name):
        yield f"{where} imports {one.name} from {one.module}, which does not define it"
    if one.at_start:
        way = circle(sources, file, home)
        if way is not None:
            yield f"{where} imports in a circle: {' → '.join(way)}"
    whole = _whole(sources, home, one)
    if whole is None:
        return
    for name in _used_of(file, one.local):
        if not defines(sources, whole, name):
            yield f"{where} imports {whole.name}, which does not define {name}"


def _whole(sources: Sources, home: SourceFile, one: Import) -> SourceFile | None:
    """The module that the imported name means; None where it is another thing."""
    if one.name is None:
        return home
    is_its_own = isinstance(bound(sources, home, one.name), Unbound)
    return sources.module(home, f".{one.name}") if is_its_own else None


def _used_of(file: SourceFile, local: str) -> Iterator[str]:
    """Attributes that a file asks of a module it has imported under a name of its own."""
    for node in ast.walk(file.tree) if file.tree is not None else ():
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == local
        ):
            yield node.attr
