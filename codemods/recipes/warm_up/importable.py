"""Whether what a warm-up imports can be there: read off the source, and only what is sure.

A tree may be a part of the package, as a release is that is read from the index. So a module is
missing for sure only beside the worker, where all of them are read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.engine import imports
from codemods.engine.checkout import RUNNER, WORKER
from codemods.engine.imports import Import
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.warm_up.warmup_edit import MODULE
from codemods.transforms import names

_FOLDER = WORKER.rpartition("/")[0]


@dataclass(frozen=True)
class _Module:
    """The module that a statement imports from; `file` is None where the tree has no such file."""

    file: SourceFile | None


def not_importable(
    sources: Sources, warmup: SourceFile, function: ast.FunctionDef, others: tuple[str, ...]
) -> str | None:
    """What the engine cannot import, as a sentence's part; None where that is not sure.

    Looked at are the imports of the warm-up's module, of the function in it, and circles between
    that module, the worker, the runner and `others`, files of the package.
    """
    return next(_complaints(sources, warmup, function, others), None)


def _complaints(
    sources: Sources, warmup: SourceFile, function: ast.FunctionDef, others: tuple[str, ...]
) -> Iterator[str]:
    lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    for one in imports.imports_of(warmup):
        if not one.guarded and (one.at_start or one.line in lines):
            yield from _missing(sources, warmup, one, function)
    among = {sources.checkout.name(name) for name in (MODULE, WORKER, RUNNER, *others)}
    for relative in (MODULE, *others):
        file = sources.read(relative)
        if file is not None:
            yield from _circles(sources, file, among)


def _missing(
    sources: Sources, file: SourceFile, one: Import, function: ast.FunctionDef
) -> Iterator[str]:
    found = _module(sources, file, one.module)
    if found is None:
        return
    where = f"{file.name}:{one.line}"
    if found.file is None:
        yield f"{where} imports from {one.module}, which the tree does not have"
    elif one.name is not None:
        if _lacks(sources, found.file, one.name):
            yield f"{where} imports {one.name} from {one.module}, which does not define it"
    else:
        for name in _used_of(function, one.local):
            if _lacks(sources, found.file, name):
                yield f"{where} imports {one.module}, which does not define {name}"


def _module(sources: Sources, file: SourceFile, module: str) -> _Module | None:
    """None where it is not sure whether the tree has it."""
    try:
        found = sources.module(file, module)
    except Refusal:
        return None
    package = f"{sources.checkout.package_name}.{_FOLDER.replace('/', '.')}"
    beside = module.rpartition(".")[0] == package
    return _Module(found) if found is not None or beside else None


def _lacks(sources: Sources, home: SourceFile, name: str) -> bool:
    """Whether a module has no such name; one that its text has anywhere is taken to be there."""
    if home.name.endswith("__init__.py") or re.search(rb"\b%b\b" % name.encode(), home.data):
        return False
    try:
        return not names.star_imports(home.module) and not imports.defines(sources, home, name)
    except Refusal:
        return False


def _used_of(function: ast.FunctionDef, local: str) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == local:
            yield node.attr


def _circles(sources: Sources, file: SourceFile, among: set[str]) -> Iterator[str]:
    for one in imports.imports_of(file):
        if one.guarded or not one.at_start or one.name is None:
            continue
        found = _module(sources, file, one.module)
        if found is None or found.file is None or found.file.name not in among:
            continue
        way = imports.circle(sources, file, found.file, among)
        if way is not None:
            yield f"{file.name}:{one.line} imports in a circle: {' → '.join(way)}"
