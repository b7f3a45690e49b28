"""Rule: the worker imports the warm-up and calls it in the right place; nothing else changes."""

from __future__ import annotations

import ast

from tests.forks.oracle.modules import Module, Package, methods
from tests.forks.oracle.paths import CALL, METHOD, Walk
from tests.forks.oracle.steps import FLAG, flag_of

WORKER = "v1/worker/gpu_worker.py"
WARMUP = "v1/worker/gpu/warmup.py"


def faults(old: Package, new: Package, monitors: frozenset[str]) -> list[str]:
    before, after = old.modules.get(WORKER), new.modules.get(WORKER)
    if before is None or after is None:
        return ["no worker"]
    changed = before is not after
    found = state_faults(new, monitors, strict=changed)
    if changed and _without_ours(before, after) != _without_ours(after, before):
        found.append("the worker changed by more than the import and the call")
    if not _knows_v2(old) and _knows_v2(new):
        found.append(f"the worker has no {FLAG}")
    if changed:
        found += _argument_faults(new)
    return found


def state_faults(package: Package, monitors: frozenset[str], *, strict: bool = False) -> list[str]:
    """What is wrong with the worker's call.

    `strict` asks what a call put in by the tool must satisfy: every V1 path makes it, after the
    sampler's dummy run. A call that is there already counts in whatever arm it stands, as long as
    some V1 path makes it before the monitor.
    """
    module = package.modules.get(WORKER)
    owner = _owner(package)
    if module is None or owner is None:
        return [f"no worker with {METHOD}"]
    found = _import_faults(package, module, methods(owner))
    flag = flag_of(owner)
    for v2 in (False, True) if _mentions(owner, flag) else (False,):
        walk = Walk(module, owner, v2, monitors, strict, flag)
        wrong = walk.run()
        if not strict and not v2 and walk.in_time:
            wrong = [fault for fault in wrong if not fault.endswith(("the call", "monitor"))]
        found += wrong
    return sorted(set(found))


def _owner(package: Package) -> ast.ClassDef | None:
    """The class `Worker`, or the only class with the method, whatever a fork calls it."""
    module = package.modules.get(WORKER)
    with_method = {
        name: owner
        for name, owner in (module.classes.items() if module else ())
        if METHOD in methods(owner)
    }
    only = next(iter(with_method.values())) if len(with_method) == 1 else None
    return with_method.get("Worker", only)


def _knows_v2(package: Package) -> bool:
    owner = _owner(package)
    return owner is not None and _mentions(owner, FLAG)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(
        (isinstance(part, ast.Attribute) and part.attr == name)
        or (isinstance(part, ast.Constant) and part.value == name)
        for part in ast.walk(node)
    )


def _argument_faults(package: Package) -> list[str]:
    """The call must name the runner that the method's own warm-up steps are made on."""
    runners, given = set(), set()
    for node in ast.walk(package.modules[WORKER].tree):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func).endswith(("._dummy_run", "._dummy_sampler_run")):
            runners.add(ast.unparse(node.func).rpartition(".")[0])
        elif ast.unparse(node.func) == CALL:
            given |= {ast.unparse(argument) for argument in node.args}
    return ["the call is given another runner"] if given - runners and runners else []


def _import_faults(
    package: Package, module: Module, known: dict[str, ast.FunctionDef]
) -> list[str]:
    for function in known.values():
        calls = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == CALL]
        if not calls:
            continue
        inside = module.imported(ast.walk(function))
        origin = inside.get(CALL) or module.imports.get(CALL)
        home = package.module_at(origin.module) if origin else None
        if origin is None or origin.name != CALL or home is None or home.path != WARMUP:
            return ["the call's name is not imported from the warm-up module"]
        arguments = [n.arg for n in ast.walk(function) if isinstance(n, ast.arg)]
        if any(isinstance(n.ctx, ast.Store) for n in calls) or CALL in arguments:
            return ["the call's name is assigned to"]
        if CALL in module.functions or CALL in module.constants or CALL in module.classes:
            return ["the call's name is bound twice"]
    return []


def _without_ours(module: Module, other: Module) -> list[str]:
    """What only this module has, less the import and the call, as text to compare."""
    rest = (_Remover().visit(node) for node in module.without(other))
    return [ast.dump(node) for node in rest if node is not None]


class _Remover(ast.NodeTransformer):
    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        node.names = [alias for alias in node.names if alias.name != CALL]
        return node if node.names else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_call(node) else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        ours = _is_call(node.body[-1]) and not node.orelse
        self.generic_visit(node)
        return None if ours and not node.body else node


def _is_call(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == CALL
    )
