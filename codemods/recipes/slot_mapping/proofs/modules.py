"""The modules that the slot-mapping proofs load, found without running them."""

from __future__ import annotations

import ast

from codemods.prove.subject import Side

BLOCK_TABLE = "v1/worker/block_table.py"
WARMUP = "v1/worker/gpu/warmup.py"
MODEL_RUNNER = "v1/worker/gpu_model_runner.py"
BUFFERS = "v1/utils.py"
ATTENTION = "v1/attention/backends/utils.py"

WARMUP_FUNCTION = "warmup_v1_slot_mapping_kernel"


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
