"""Rule: every kernel launched for the slot mapping leaves num_tokens unspecialised, no other."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from tests.forks.oracle.modules import Module, Package, first_line, methods, parameters

BLOCK_TABLE = "v1/worker/block_table.py"
NAME = "num_tokens"
LIST = "do_not_specialize"


@dataclass(frozen=True)
class Kernel:
    path: str
    name: str


@lru_cache(maxsize=8)
def launched(package: Package) -> tuple[Kernel, ...]:
    """The kernels with a run-time num_tokens that BlockTable.compute_slot_mapping launches."""
    home = package.modules.get(BLOCK_TABLE)
    lineage = package.lineage(home, "BlockTable") if home else []
    found: list[Kernel] = []
    todo: list[tuple[Module, ast.AST]] = [
        (where, methods(owner)["compute_slot_mapping"])
        for where, owner in lineage
        if "compute_slot_mapping" in methods(owner)
    ][:1]
    seen: set[int] = set()
    while todo:
        module, node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                _meet(package, module, part.id, todo, found)
            elif isinstance(part, ast.Attribute) and ast.unparse(part.value) in ("self", "cls"):
                todo += [
                    (where, value)
                    for where, owner in lineage
                    for value in _attribute(owner, part.attr)
                ]
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                origin = module.every_import.get(part.value.id)
                other = package.module_at(origin.dotted) if origin else None
                if other is not None:
                    _meet(package, other, part.attr, todo, found)
    return tuple(sorted(set(found), key=lambda kernel: (kernel.path, kernel.name)))


def _meet(
    package: Package,
    module: Module,
    name: str,
    todo: list[tuple[Module, ast.AST]],
    found: list[Kernel],
) -> None:
    # Both an import and its stand-in, as in `except ImportError: kernel = None`.
    for where, known in package.meanings(module, name):
        _meet_one(where, known, todo, found)


def _meet_one(
    where: Module, known: str, todo: list[tuple[Module, ast.AST]], found: list[Kernel]
) -> None:
    function = where.functions.get(known)
    if function is None:
        todo += [(where, value) for value in where.constants.get(known, [])]
    elif jit_decorator(where, function) is None:
        todo.append((where, function))
    elif takes_num_tokens(function):
        found.append(Kernel(where.path, known))


def _attribute(owner: ast.ClassDef, name: str) -> list[ast.AST]:
    """A method of the class, or what is assigned to an attribute of that name."""
    known = methods(owner).get(name)
    return [known] if known else _assigned(owner).get(name, [])


@lru_cache(maxsize=8)
def _assigned(owner: ast.ClassDef) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(owner):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            written = ast.unparse(target).removeprefix("self.")
            found.setdefault(written, []).append(node.value)  # type: ignore[attr-defined]
    return found


def takes_num_tokens(function: ast.FunctionDef) -> bool:
    return any(
        arg.arg == NAME
        and "constexpr" not in (ast.unparse(arg.annotation) if arg.annotation else "")
        for arg in parameters(function)
    )


def jit_decorator(module: Module, function: ast.FunctionDef) -> ast.expr | None:
    """The decorator that makes the function a Triton kernel."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        written = ast.unparse(called)
        root, _, rest = written.partition(".")
        origin = module.imports.get(root)
        whole = f"{origin.dotted}.{rest}".rstrip(".") if origin else written
        if whole.endswith("triton.jit"):
            return decorator
    return None


def unspecialised(module: Module, function: ast.FunctionDef) -> list[str] | None:
    """The parameters listed in the decorator, by name; None when it cannot be read."""
    decorator = jit_decorator(module, function)
    if not isinstance(decorator, ast.Call):
        return []
    if any(keyword.arg is None for keyword in decorator.keywords):
        return None
    given = [k.value for k in decorator.keywords if k.arg == LIST]
    if not given:
        return []
    values = _values(module, given[0])
    if values is None:
        return None
    names = [arg.arg for arg in parameters(function)]
    out: list[str] = []
    for value in values:
        if isinstance(value, str):
            out.append(value)
        elif isinstance(value, int) and 0 <= value < len(names):
            out.append(names[value])
        else:
            return None
    return out


def _values(module: Module, node: ast.expr, depth: int = 0) -> list[object] | None:
    if depth > 8:
        return None
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        out: list[object] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = _values(module, element.value, depth + 1)
                if inner is None:
                    return None
                out += inner
            elif isinstance(element, ast.Constant):
                out.append(element.value)
            elif isinstance(element, ast.Name) and len(module.constants.get(element.id, [])) == 1:
                constant = module.constants[element.id][0]
                if not isinstance(constant, ast.Constant):
                    return None
                out.append(constant.value)
            else:
                return None
        return out
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = _values(module, node.left, depth + 1)
        right = _values(module, node.right, depth + 1)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Name) and len(module.constants.get(node.id, [])) == 1:
        return _values(module, module.constants[node.id][0], depth + 1)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple", "set"):
        return _values(module, node.args[0], depth + 1) if len(node.args) == 1 else None
    if isinstance(node, ast.Constant) and node.value is None:
        return []
    return None


def state_faults(package: Package) -> list[str]:
    found = []
    for kernel in launched(package):
        module = package.modules[kernel.path]
        listed = unspecialised(module, module.functions[kernel.name])
        if listed is None or NAME not in listed:
            found.append(f"{kernel.name} specialises {NAME}")
    return found


def faults(old: Package, new: Package) -> list[str]:
    wanted = launched(old)
    found = state_faults(new)
    if launched(new) != wanted:
        found.append("other kernels are launched")
    for path in {kernel.path for kernel in wanted}:
        before, after = old.modules[path], new.modules[path]
        if before is after:
            continue
        ours = {kernel.name for kernel in wanted if kernel.path == path}
        for name, function in before.functions.items():
            was = unspecialised(before, function)
            now = unspecialised(after, after.functions[name]) if name in after.functions else None
            if name in ours and was is not None and now is not None:
                was = was if NAME in was else [*was, NAME]
                if sorted(was) != sorted(now):
                    found.append(f"{name} lists {now}, not {was}")
            elif was != now:
                found.append(f"{name} lists {now}, and listed {was}")
            # Triton's cache key covers the line where the decorators start; only a list that
            # was spread over lines may push the kernels below it down.
            if (
                name in after.functions
                and _starts(before, name) != _starts(after, name)
                and not any(_spread(before.functions[one]) for one in ours)
            ):
                found.append(f"{name} moved to another line")
        if _rest(before, after, ours) != _rest(after, before, ours):
            found.append(f"{path}: more than the kernels' lists changed")
    return found


def _starts(module: Module, name: str) -> int:
    return first_line(module.functions[name])


def _spread(function: ast.FunctionDef) -> bool:
    return any(d.lineno != d.end_lineno for d in function.decorator_list)


def _rest(module: Module, other: Module, kernels: set[str]) -> list[str]:
    """What only this module has, less lists of unspecialised parameters, as text to compare."""
    named = _constants(module) | _constants(other)
    rest = module.without(other)
    for node in rest:
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            node.decorator_list = [_bare(decorator) for decorator in node.decorator_list]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id in named:
                node.value = ast.Constant(None)
    return [ast.dump(node) for node in rest]


def _bare(decorator: ast.expr) -> ast.expr:
    if not isinstance(decorator, ast.Call):
        return decorator
    decorator.keywords = [k for k in decorator.keywords if k.arg != LIST]
    return decorator if decorator.keywords or decorator.args else decorator.func


def _constants(module: Module) -> set[str]:
    """The names that stand in lists of unspecialised parameters."""
    return {
        name.id
        for function in module.functions.values()
        for decorator in function.decorator_list
        for keyword in getattr(decorator, "keywords", ())
        if keyword.arg == LIST
        for name in ast.walk(keyword)
        if isinstance(name, ast.Name)
    }
