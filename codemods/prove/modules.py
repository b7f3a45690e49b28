"""The modules of the tree that a proof loads, found without running them."""

from __future__ import annotations

import ast

from codemods.prove.subject import Side


def modules_of(side: Side, package: str, home: str, classes: frozenset[str]) -> dict[str, str]:
    """Modules that classes of the file `home` are made of, beside it: dotted name to file.

    A fork may keep the kernels, the classes or their bases elsewhere in the package.
    """
    found: dict[str, str] = {}
    pending = [home]
    while pending:
        importing = pending.pop()
        tree = side.parse(importing)
        wanted = classes | _base_names(tree)
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
                    if relative != home and _holds(side.parse(relative), member, wanted):
                        found[name] = relative
                        pending.append(relative)
    return found


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
