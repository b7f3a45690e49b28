"""A package's modules, parsed, and what a name in one of them stands for."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache


@dataclass(frozen=True)
class Origin:
    """Where an imported name comes from; `name` is None for `import module`."""

    module: str
    name: str | None

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


class Module:
    """One parsed file; only what is bound outside functions and classes counts as bound."""

    def __init__(self, path: str, data: bytes, package: str) -> None:
        self.path = path
        self.tree = ast.parse(data)
        self.package = package
        self.lines = data.splitlines()

    def without(self, other: Module) -> list[ast.stmt]:
        """Copies of the statements that do not stand, letter for letter, in the other module.

        Classes are taken apart: their methods count one by one.
        """
        theirs = Counter(other._text(node) for node in _pieces(other.tree))
        rest = []
        for node in _pieces(self.tree):
            text = self._text(node)
            if theirs[text]:
                theirs[text] -= 1
            else:
                rest += ast.parse(ast.unparse(node)).body
        return rest

    def _text(self, node: ast.stmt) -> bytes:
        return b"\n".join(self.lines[first_line(node) - 1 : node.end_lineno])

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {n.name: n for n in self.outside if isinstance(n, ast.FunctionDef)}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {n.name: n for n in self.outside if isinstance(n, ast.ClassDef)}

    @cached_property
    def constants(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for node in self.outside:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
                targets = [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)  # type: ignore[attr-defined]
        return found

    @cached_property
    def outside(self) -> list[ast.stmt]:
        """Statements that run on import, in order, those in `if` and `try` too."""
        return list(_outside(self.tree.body))

    @cached_property
    def imports(self) -> dict[str, Origin]:
        """Names bound by imports outside functions, except for the type checker alone."""
        return self.imported(self.outside)

    @cached_property
    def stars(self) -> list[str]:
        """The modules from which everything is imported."""
        nodes = (node for node in self.outside if isinstance(node, ast.ImportFrom))
        return [self.absolute(node) for node in nodes if node.names[0].name == "*"]

    @cached_property
    def every_import(self) -> dict[str, Origin]:
        return self.imported(ast.walk(self.tree))

    def imported(self, nodes: Iterator[ast.AST] | list[ast.stmt]) -> dict[str, Origin]:
        found: dict[str, Origin] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.split(".")[0]
                    found[bound] = Origin(alias.name if alias.asname else bound, None)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    origin = Origin(self.absolute(node), alias.name)
                    found[alias.asname or alias.name] = origin
        return found

    def absolute(self, node: ast.ImportFrom) -> str:
        """The dotted module that an import names, with the package in front."""
        if not node.level:
            return node.module or ""
        folder = [self.package, *self.path.split("/")[:-1]]
        kept = folder[: len(folder) - (node.level - 1)]
        return ".".join(kept + ([node.module] if node.module else []))

    def bound(self, name: str) -> bool:
        return any(
            name in names for names in (self.functions, self.classes, self.constants, self.imports)
        )


class Package:
    def __init__(self, modules: Mapping[str, Module], name: str) -> None:
        self.modules = modules
        self.name = name

    @classmethod
    def parse(cls, files: Mapping[str, bytes], name: str) -> Package:
        wanted = {path: data for path, data in files.items() if path.endswith(".py")}
        last = name.rsplit("/", 1)[-1]
        return cls({p: _module(p, d, last) for p, d in wanted.items()}, last)

    def module_at(self, dotted: str) -> Module | None:
        if dotted != self.name and not dotted.startswith(self.name + "."):
            return None
        stem = dotted[len(self.name) + 1 :].replace(".", "/")
        return self.modules.get(stem + ".py") or self.modules.get(f"{stem}/__init__.py".lstrip("/"))

    def meanings(self, module: Module, name: str, seen: int = 0) -> list[tuple[Module, str]]:
        """What the package defines that `name` can be in `module`, by module and name there."""
        here = (module.functions, module.classes, module.constants)
        found = [(module, name)] if any(name in names for names in here) else []
        if seen > 8:
            return found
        for origin in module.stars:
            home = self.module_at(origin)
            found += self.meanings(home, name, seen + 1) if home else []
        origin = module.every_import.get(name)
        if origin is None or origin.name is None:
            return found
        home = self.module_at(origin.module)
        return found + (self.meanings(home, origin.name, seen + 1) if home else [])

    def lineage(self, module: Module, name: str) -> list[tuple[Module, ast.ClassDef]]:
        """The class that `name` is in a module, with the bases that the package defines."""
        found: list[tuple[Module, ast.ClassDef]] = []
        todo = self.meanings(module, name)
        while todo:
            home, known = todo.pop(0)
            owner = home.classes.get(known)
            if owner is None or any(owner is one for _, one in found):
                continue
            found.append((home, owner))
            for base in owner.bases:
                root, _, rest = ast.unparse(base).partition(".")
                origin = home.every_import.get(root)
                other = self.module_at(origin.dotted) if rest and origin else None
                todo += self.meanings(other, rest) if other else self.meanings(home, root)
        return found


@lru_cache(maxsize=256)
def _module(path: str, data: bytes, package: str) -> Module:
    return Module(path, data, package)


def _pieces(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from node.body
        else:
            yield node


def first_line(node: ast.stmt) -> int:
    """The line where a statement starts, its decorators included."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _outside(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from _outside(node.body)
            yield from _outside(node.orelse)
        elif isinstance(node, ast.Try):
            for part in (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody):
                yield from _outside(part)
        elif isinstance(node, ast.With):
            yield from _outside(node.body)


def methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The methods by name; the last definition is the one that counts."""
    return {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]
