"""The tree under proof, before and after, as bytes and as facts read without running it.

A plan holds only the files it changes; every other file is the same on both sides and is read from
the disk. A tree that is fixed already has no changes, and is taken as it stands on both sides.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codemods.outcome import EditName, Outcome, Plan, Status

BLOCK_TABLE = "v1/worker/block_table.py"
WARMUP = "v1/worker/gpu/warmup.py"
WORKER = "v1/worker/gpu_worker.py"
MODEL_RUNNER = "v1/worker/gpu_model_runner.py"
BUFFERS = "v1/utils.py"
ATTENTION = "v1/attention/backends/utils.py"

WARMUP_FUNCTION = "warmup_v1_slot_mapping_kernel"


@dataclass(frozen=True)
class Side:
    """One side of the comparison: "before" the rewrite or "after" it."""

    plan: Plan
    after: bool

    @property
    def label(self) -> str:
        return "after" if self.after else "before"

    def name(self, relative: str) -> str:
        """The file's POSIX path relative to the root; `relative` is relative to the package."""
        return str(PurePosixPath(self.plan.tree.package) / relative)

    def read(self, relative: str) -> bytes | None:
        """The bytes of a file of the package, None when there is no such file."""
        name = self.name(relative)
        for change in self.plan.changes:
            if change.path == name:
                return change.after if self.after else change.before
        return _read(self.plan.tree.root / name)

    def parse(self, relative: str) -> ast.Module | None:
        """The file's syntax tree, None where it is missing or does not parse here."""
        source = self.read(relative)
        return None if source is None else parse(source)


def sides(plan: Plan) -> tuple[Side, ...]:
    """Before and after; a tree that is fixed already has only an after."""
    after = Side(plan, after=True)
    return (Side(plan, after=False), after) if plan.changes else (after,)


def parse(source: bytes) -> ast.Module | None:
    """A syntax tree from bytes, honouring a BOM and a coding line; None when it does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError):
            return None


def edit(plan: Plan, name: EditName) -> Outcome | None:
    """What became of an edit; None when it was left out."""
    return next((outcome for outcome in plan.outcomes if outcome.edit is name), None)


def in_force(plan: Plan, name: EditName) -> bool:
    """Whether the after side holds the edit, made now or there already."""
    outcome = edit(plan, name)
    return outcome is not None and outcome.status in (Status.EDIT, Status.PRESENT)


def import_name(side: Side) -> str:
    """The dotted name the tree imports itself by, such as `vllm`.

    Read from an absolute import of its `triton_utils`, since the package may be renamed or sit in a
    bigger one; else the package folder's name.
    """
    trees = (side.parse(relative) for relative in (BLOCK_TABLE, WORKER))
    for node in (node for tree in trees if tree is not None for node in ast.walk(tree)):
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        head, found, _ = f"{node.module}.".partition(".triton_utils.")
        if found:
            return head
    return (side.plan.tree.root / side.plan.tree.package).resolve().name


def pad_slot_id(side: Side) -> int:
    """The tree's own PAD_SLOT_ID; -1, as in every release, where it is not a plain number."""
    tree = side.parse(ATTENTION)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "PAD_SLOT_ID" for target in node.targets
        ):
            try:
                return int(ast.literal_eval(node.value))
            except (ValueError, TypeError):
                return -1
    return -1


def class_source(side: Side, relative: str, name: str) -> str | None:
    """The source of one class of a module, without importing the module."""
    source = side.read(relative)
    tree = None if source is None else parse(source)
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


def table_modules(side: Side, package: str) -> dict[str, str]:
    """Modules that the block tables are made of, beside their own: dotted name to file.

    A fork may keep the kernel, the tables' classes or their bases elsewhere in the package.
    """
    found: dict[str, str] = {}
    pending = [BLOCK_TABLE]
    while pending:
        importing = pending.pop()
        tree = side.parse(importing)
        wanted = _TABLES | _base_names(tree)
        here = [*package.split("."), *importing.split("/")[:-1]]
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.ImportFrom):
                continue
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                for name, member in ((module, alias.name), (f"{module}.{alias.name}", "*")):
                    relative = name.removeprefix(f"{package}.").replace(".", "/") + ".py"
                    if name in found or not name.startswith(f"{package}."):
                        continue
                    if relative != BLOCK_TABLE and _holds(side.parse(relative), member, wanted):
                        found[name] = relative
                        pending.append(relative)
    return found


_TABLES = frozenset({"BlockTable", "MultiGroupBlockTable"})


def _base_names(tree: ast.Module | None) -> set[str]:
    """The first and the last part of every base that a module's classes name."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)) if tree else ()
    written = {ast.unparse(base).partition("[")[0] for node in classes for base in node.bases}
    return {part for base in written for part in (base.split(".")[0], base.split(".")[-1])}


def _holds(tree: ast.Module | None, member: str, wanted: frozenset[str] | set[str]) -> bool:
    """Whether a module has the member: a kernel, or a class that is wanted; "*" for any."""
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.FunctionDef):
            named = any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
            if named and member in ("*", node.name):
                return True
        elif isinstance(node, ast.ClassDef):
            if node.name in wanted and member in ("*", node.name):
                return True
        elif isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name for alias in node.names}
            if member in names & wanted or (member == "*" and names & wanted):
                return True
    return False


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
