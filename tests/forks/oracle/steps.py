"""What the worker's method is read by: its warm-up steps, the V2 flag, the order of a call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

STEPS = {"_dummy_sampler_run", "_dummy_pooler_run", "warmup_kernels"}
FLAG = "use_v2_model_runner"


def evaluated(node: ast.AST, sure: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The parts of an expression in the order they run, and whether they surely do."""
    if isinstance(node, (ast.Lambda, ast.FunctionDef)):
        return
    if isinstance(node, ast.BoolOp):
        for place, value in enumerate(node.values):
            yield from evaluated(value, sure and place == 0)
        return
    if isinstance(node, ast.IfExp):
        yield from evaluated(node.test, sure)
        yield from evaluated(node.body, False)
        yield from evaluated(node.orelse, False)
        return
    looped = isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
    for child in ast.iter_child_nodes(node):
        yield from evaluated(child, sure and not looped)
    yield node, sure


def gate_of(known: dict[str, ast.FunctionDef]) -> ast.If | None:
    """The innermost `if` that holds every warm-up step of the method that holds them."""
    for function in known.values():
        steps = [n for n in ast.walk(function) if _is_step(n)]
        if not steps:
            continue
        ifs = [
            n
            for n in ast.walk(function)
            if isinstance(n, ast.If) and all(any(s is p for p in ast.walk(n)) for s in steps)
        ]
        # ast.walk goes breadth first, so the innermost comes last.
        return ifs[-1] if ifs else ast.If(ast.Constant(True), [], [])
    return None


def named_once(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The value of a local name that a function binds by one assignment and nothing else."""
    bound = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    if sum(not isinstance(n.ctx, ast.Load) for n in bound) != 1:
        return None
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [name]:
            return node.value
    return None


def flag_of(owner: ast.ClassDef) -> str:
    """The attribute that means V2, by whatever name a fork gives it.

    Its arm calls warmup_kernels, or its other arm makes the sampler's dummy run.
    """
    functions = [node for node in ast.walk(owner) if isinstance(node, ast.FunctionDef)]
    for function, node in ((one, part) for one in functions for part in ast.walk(one)):
        if not isinstance(node, ast.If):
            continue
        local = named_once(function, node.test.id) if isinstance(node.test, ast.Name) else None
        test = ast.unparse(local or node.test)
        if not re.fullmatch(r"self\.\w+", test):
            continue
        if "warmup_kernels" in _calls(node.body) or "_dummy_sampler_run" in _calls(node.orelse):
            return test.removeprefix("self.")
    return FLAG


def _calls(body: list[ast.stmt]) -> set[str]:
    nodes = (node for statement in body for node in ast.walk(statement))
    written = (ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call))
    return {name.rpartition(".")[2] for name in written}


def _is_step(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return ast.unparse(node.func).rsplit(".", 1)[-1] in STEPS


def has_step(node: ast.AST) -> bool:
    return any(_is_step(part) for part in ast.walk(node))
