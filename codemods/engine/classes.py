"""A class of the package by the name that a module has for it, its bases and their methods.

Followed through the package's own imports, star imports and re-exports too; nothing is executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from codemods.engine.resolve import definitions
from codemods.engine.sources import SourceFile, Sources
from codemods.transforms import names


class Class(NamedTuple):
    """A class and the file that defines it."""

    file: SourceFile
    node: cst.ClassDef

    @property
    def name(self) -> str:
        return self.node.name.value

    @property
    def body(self) -> cst.BaseSuite:
        return self.node.body


@dataclass(frozen=True)
class Lineage:
    """A class and its bases, each before its own; `unknown` are those outside the package."""

    classes: tuple[Class, ...]
    unknown: tuple[str, ...] = ()

    @property
    def own(self) -> Class:
        return self.classes[0]

    def methods(self, name: str) -> Iterator[tuple[Class, cst.FunctionDef]]:
        """Every definition of a method; the first is the one that a call reaches first."""
        for one in self.classes:
            for function in reversed(names.functions(one.body, name)):
                yield one, function

    @cached_property
    def files(self) -> frozenset[str]:
        return frozenset(one.file.name for one in self.classes)


def lineage(sources: Sources, file: SourceFile, name: str) -> Lineage | None:
    """The class that `name` means in a module, with its bases; None where there is none."""
    own = find(sources, file, name)
    if own is None:
        return None
    classes: list[Class] = []
    unknown: list[str] = []
    pending = [own]
    while pending:
        one = pending.pop(0)
        if any(one.node is known.node for known in classes):
            continue
        classes.append(one)
        for base in (argument.value for argument in one.node.bases if argument.keyword is None):
            # `Base[Item]` is Base as far as its methods go.
            path = names.dotted(base.value if isinstance(base, cst.Subscript) else base)
            found = find(sources, one.file, path) if path else None
            if found is not None:
                pending.append(found)
            elif path not in _WITHOUT_METHODS:
                unknown.append(path or one.file.module.code_for_node(base))
    return Lineage(tuple(classes), tuple(unknown))


# Bases that bring none of the methods that a recipe asks for.
_WITHOUT_METHODS = frozenset(
    {"object", "ABC", "abc.ABC", "Generic", "typing.Generic", "Protocol", "typing.Protocol"}
)


def find(sources: Sources, file: SourceFile, path: str) -> Class | None:
    """The class behind a dotted name of a module."""
    for found in definitions(sources, file, path):
        if isinstance(found.node, cst.ClassDef):
            return Class(found.file, found.node)
    return None
