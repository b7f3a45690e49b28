"""Which Triton kernels a method launches, and where they are defined.

Found by launch, not by name: V2's `_compute_slot_mappings_kernel`, a plugin's copy and other
kernels whose names share the prefix are not what this method calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import libcst as cst

from codemods.engine.classes import Class, Lineage, lineage
from codemods.engine.classes import find as find_class
from codemods.engine.resolve import Definition, definitions, imported
from codemods.engine.sources import SourceFile, Sources
from codemods.transforms import names
from codemods.transforms.jit import Scope


class Kernel(NamedTuple):
    """A jitted function and the file that defines it; one name may have several definitions."""

    name: str
    file: SourceFile
    definitions: tuple[cst.FunctionDef, ...]


class Launches(NamedTuple):
    """What the method reaches: its kernels, launches that are not resolved, upstream's class."""

    kernels: tuple[Kernel, ...]
    unresolved: tuple[str, ...] = ()
    kernel_class: str | None = None
    method: tuple[Class, cst.FunctionDef] | None = None
    owner: Lineage | None = None
    calls_super: bool = False


def find(sources: Sources, file: SourceFile, owner: str, method: str) -> Launches:
    """Follow `owner.method` through its class, its module and the package's own imports."""
    tables = lineage(sources, file, owner)
    if tables is None:
        return Launches(())
    search = _Search(sources, tables)
    methods = tuple(tables.methods(method))
    for defining, function in methods:
        if defining is not methods[0][0] and not search.calls_super:
            break
        search.follow(defining.file, function.body)
    found = bool(search.kernels or search.kernel_class)
    unresolved = [*search.unresolved, *([] if found else search.doubtful)]
    return Launches(
        tuple(search.kernels.values()),
        tuple(dict.fromkeys(unresolved)),
        search.kernel_class,
        methods[0] if methods else None,
        tables,
        search.calls_super,
    )


def jitted_functions(file: SourceFile) -> Iterator[cst.FunctionDef]:
    """Every kernel at a module's top level, behind `if` and `try` too."""
    scope = Scope.of(file.module)
    for statement in names.walk(file.module):
        if isinstance(statement, cst.FunctionDef) and _is_jitted(statement, scope):
            yield statement


def _is_jitted(function: cst.FunctionDef, scope: Scope) -> bool:
    return any(scope.is_jit(decorator.decorator) for decorator in function.decorators)


class Found(IntEnum):
    """What a name was found to be; nothing where this package does not define it."""

    NOTHING = 0
    FUNCTION = 1
    KERNEL = 2


@dataclass
class _Search:
    sources: Sources
    tables: Lineage
    kernels: dict[tuple[str, str], Kernel] = field(default_factory=dict)
    unresolved: list[str] = field(default_factory=list)
    # Local names that are launched: as a rule their meaning was met where they were bound.
    doubtful: list[str] = field(default_factory=list)
    kernel_class: str | None = None
    _followed: set[cst.CSTNode] = field(default_factory=set)
    _looked_up: dict[tuple[str, str], Found] = field(default_factory=dict)
    _attributes: dict[cst.ClassDef, list[tuple[str | None, str]]] = field(default_factory=dict)
    calls_super: bool = False

    def follow(self, file: SourceFile, body: cst.CSTNode) -> None:
        """Take in what a function's body reaches, calls of the module's own functions too."""
        if body in self._followed:
            return
        self._followed.add(body)
        bound = _bindings(file.module, body)
        launched = {
            node.func.value for node in names.calls(body) if isinstance(node.func, cst.Subscript)
        }
        for node in names.descend(body):
            self.calls_super |= isinstance(node, cst.Name) and node.value == "super"
            if isinstance(node, (cst.FunctionDef, cst.Lambda)):
                self.follow(file, node.body)
            if isinstance(node, (cst.Name, cst.Attribute)) or node in launched:
                path = names.dotted(node) if isinstance(node, cst.BaseExpression) else None
                known = self._reference(file, path, bound) if path is not None else Found.NOTHING
                if node in launched and known is not Found.KERNEL:
                    name = path or file.module.code_for_node(node)
                    sure = known is Found.FUNCTION or not _is_local(node, bound)
                    (self.unresolved if sure else self.doubtful).append(name)

    def _reference(self, file: SourceFile, path: str, bound: dict[str, names.Imported]) -> Found:
        """Resolve a dotted name: a kernel, or a function that was followed."""
        first, _, rest = path.partition(".")
        if first in ("self", "cls", self.tables.own.name) and rest:
            return self._method(rest) if file.name in self.tables.files else Found.NOTHING
        if first in bound:
            return self._imported(file, bound[first], rest)
        return Found.NOTHING if rest else self._defined(file, first)

    def _method(self, name: str) -> Found:
        found = Found.NOTHING
        for owner in self.tables.classes:
            file = owner.file
            for method in names.functions(owner.body, name):
                if _is_jitted(method, Scope.of(file.module)):
                    self._add(name, file, (method,))
                    found = Found.KERNEL
                else:
                    self.follow(file, method.body)
                    found = max(found, Found.FUNCTION)
            for attribute, value in names.assignments(owner.body):
                path = names.dotted(value)
                if attribute == name and path is not None:
                    bound = _bindings(file.module, owner.body)
                    found = max(found, self._reference(file, path, bound))
            for target, path in self._instance_attributes(owner):
                if target == f"self.{name}":
                    bound = _bindings(file.module, owner.body)
                    found = max(found, self._reference(file, path, bound))
        return found

    def _instance_attributes(self, owner: Class) -> list[tuple[str | None, str]]:
        """`self.x = y` of a constructor, as pairs of dotted names."""
        if owner.node not in self._attributes:
            self._attributes[owner.node] = [
                (names.dotted(target.target), path)
                for method in names.functions(owner.body, "__init__")
                for node in names.descend(method.body)
                if isinstance(node, cst.Assign) and (path := names.dotted(node.value)) is not None
                for target in node.targets
            ]
        return self._attributes[owner.node]

    def _defined(self, file: SourceFile, name: str) -> Found:
        """Resolve a name of a module, once."""
        if (file.name, name) not in self._looked_up:
            self._looked_up[file.name, name] = Found.NOTHING  # what leads back here adds nothing
            self._looked_up[file.name, name] = self._resolved(file, name)
        return self._looked_up[file.name, name]

    def _resolved(self, file: SourceFile, name: str) -> Found:
        return self._found(name, definitions(self.sources, file, name))

    def _found(self, name: str, found: tuple[Definition, ...]) -> Found:
        """Add what a name means: kernels, else a kernel's instance, else functions."""
        functions = [(one.file, one.node) for one in found if isinstance(one.node, cst.FunctionDef)]
        jitted = [
            (file, node) for file, node in functions if _is_jitted(node, Scope.of(file.module))
        ]
        for file, node in jitted:
            self._add(node.name.value, file, (node,))
        if jitted:
            return Found.KERNEL
        for one in found:
            if isinstance(one.node, cst.BaseExpression) and self._is_kernel_class(one):
                if self._registers_keys(name):
                    self.kernel_class = name
                else:
                    self.unresolved.append(name)
                return Found.KERNEL
        for file, node in functions:
            self.follow(file, node.body)
        return Found.FUNCTION if functions else Found.NOTHING

    def _is_kernel_class(self, found: Definition) -> bool:
        """Whether a value is an instance of a class that holds its own jitted kernel."""
        path = names.dotted(found.node.func) if isinstance(found.node, cst.Call) else None
        owner = find_class(self.sources, found.file, path) if path is not None else None
        if owner is None:
            return False
        scope = Scope.of(owner.file.module)
        return any(
            isinstance(one, cst.FunctionDef) and _is_jitted(one, scope)
            for one in names.walk(owner.body)
        )

    def _registers_keys(self, instance: str) -> bool:
        """Whether the tables' constructor has the kernel register keys for warm-up, as of 0.29."""
        return any(
            (names.dotted(call.func) or "").startswith(f"{instance}.register")
            for _, constructor in self.tables.methods("__init__")
            for call in names.calls(constructor.body)
        )

    def _imported(self, file: SourceFile, bound: names.Imported, rest: str) -> Found:
        _, name = bound.origin(rest)
        key = (file.name, f"{bound.module} {bound.name} {rest}")
        if key not in self._looked_up:
            self._looked_up[key] = Found.NOTHING
            self._looked_up[key] = self._found(name, imported(self.sources, file, bound, rest))
        return self._looked_up[key]

    def _add(self, name: str, file: SourceFile, found: tuple[cst.FunctionDef, ...]) -> None:
        known = self.kernels.get((file.name, name))
        there = known.definitions if known else ()
        more = tuple(one for one in found if one not in there)
        self.kernels[file.name, name] = Kernel(name, file, (*there, *more))


def _bindings(module: cst.Module, body: cst.CSTNode) -> dict[str, names.Imported]:
    """What the imports of a module and of one function in it bind."""
    bound = {one.local: one for one in names.imports(module)}
    if isinstance(body, cst.BaseSuite):
        bound |= {one.local: one for one in names.imports(body)}
    return bound


def _is_local(node: cst.CSTNode, bound: dict[str, names.Imported]) -> bool:
    return isinstance(node, cst.Name) and node.value not in bound
