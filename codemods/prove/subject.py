"""The tree under proof, before and after, as bytes and as facts read without running it.

A tree that is fixed already has no changes, and is taken as it is, before and after.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from codemods.engine.checkout import Checkout, UnreadableFile
from codemods.engine.plan import Outcome, Plan, RecipePlan


@dataclass(frozen=True)
class Side:
    """One side of the comparison: the tree before the rewrite or after it."""

    checkout: Checkout
    label: str

    def name(self, relative: str) -> str:
        """The file's POSIX path relative to the root; `relative` is relative to the package."""
        return self.checkout.name(relative)

    def read(self, relative: str) -> bytes | None:
        """The bytes of a file of the package, None when there is no such file to read."""
        try:
            return self.checkout.read(relative)
        except UnreadableFile:
            return None

    def parse(self, relative: str) -> ast.Module | None:
        """The file's syntax tree, None where it is missing or does not parse here."""
        source = self.read(relative)
        return None if source is None else parse(source)

    def copy(self, relative: str, folder: Path) -> str:
        """Copy a file of the package into `folder`, under the side's label; where it is then."""
        path = folder / self.label / self.name(relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.read(relative) or b"")
        return str(path)


@dataclass(frozen=True)
class Subject:
    """What is proved: a plan, the checkout that it was made from, and whose proof it is.

    `recipe` is None for the proofs of every plan, such as `syntax`.
    """

    plan: Plan
    checkout: Checkout
    recipe: RecipePlan | None = None

    @property
    def before(self) -> Side:
        return Side(self.checkout, "before")

    @property
    def after(self) -> Side:
        made = {change.path: change.after for change in self.plan.changes}
        return Side(self.checkout.overlaid(made), "after")

    @property
    def sides(self) -> tuple[Side, ...]:
        """Before and after; a tree that is fixed already has only an after."""
        return (self.before, self.after) if self.plan.changes else (self.after,)

    def edit(self, name: str) -> Outcome | None:
        """What became of one of the recipe's edits; None when it was left out."""
        outcomes = self.recipe.outcomes if self.recipe else ()
        return next((outcome for outcome in outcomes if outcome.edit == name), None)

    def in_force(self, name: str) -> bool:
        """Whether the after side holds the edit, made now or there already."""
        return self.recipe is not None and self.recipe.in_force(name)


@lru_cache(maxsize=32)
def parse(source: bytes) -> ast.Module | None:
    """A syntax tree from bytes, honouring a BOM and a coding line; None when it does not parse.

    Every proof asks for the same few files, and nothing changes what it gets.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError):
            return None


def import_name(side: Side, files: Iterable[str]) -> str:
    """The dotted name the tree imports itself by, such as `vllm`.

    Read from an absolute import of its `triton_utils` in one of `files`, since the package may be
    renamed or sit in a bigger one; else the package folder's name.
    """
    trees = map(side.parse, files)
    for node in (node for tree in trees if tree is not None for node in ast.walk(tree)):
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        head, found, _ = f"{node.module}.".partition(".triton_utils.")
        if found:
            return head
    return side.checkout.package_name


def class_source(side: Side, relative: str, name: str) -> str | None:
    """The source of one class of a module, without importing the module."""
    tree = side.parse(relative)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.unparse(node)
    return None


def imported_roots(side: Side, relative: str) -> frozenset[str]:
    """First parts of the names a module imports, absolutely and unconditionally, at its top."""
    tree = side.parse(relative)
    roots: set[str] = set()
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Import):
            roots.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            roots.add(node.module.partition(".")[0])
    return frozenset(roots)
