"""What the tree does itself to warm the zeroing kernel up.

As of 0.27 the zeroer has a method `warmup`: `kernel_warmup` calls it for the V1 runner, and
`warmup_kernels` for V2's. In 0.25 and 0.26 a helper for a few model types launches the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from codemods.engine.checkout import WORKER, UnreadableFile
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.kv_block_zeroing.facts.names import KERNEL_WARMUP, METHOD
from codemods.recipes.kv_block_zeroing.facts.zeroer import Zeroer
from codemods.recipes.warm_up.method import called, find_method
from codemods.recipes.warm_up.warmup_edit import MODULE
from codemods.transforms import names

_WARMUP = "warmup"


def has_warmup(zeroer: Zeroer) -> bool:
    """Whether the zeroer has upstream's method, which zeroes a block to compile the kernel."""
    return any(
        names.dotted(call.func) == f"self.{METHOD}"
        for _, method in zeroer.owner.methods(_WARMUP)
        for call in names.calls(method.body)
    )


def warms_up(sources: Sources, zeroer: Zeroer, attributes: Iterable[str]) -> bool:
    """Whether the zeroer is warmed up on every runner that has one, whatever the model."""
    return has_warmup(zeroer) and all(_is_called(sources, attribute) for attribute in attributes)


def _is_called(sources: Sources, attribute: str) -> bool:
    """Whether a function that the worker's warm-up calls warms up the zeroer of that name."""
    reached = _called_by_the_worker(sources)
    for relative in (KERNEL_WARMUP, MODULE):
        file = sources.read(relative)
        if file is None or attribute.encode() not in file.data:
            continue
        for name in reached:
            for function in names.functions(file.module, name):
                holders = _holders(file, function, attribute)
                if _surely_warms(file, function.body, holders):
                    return True
    return False


def _called_by_the_worker(sources: Sources) -> list[str]:
    worker = sources.read(WORKER)
    if worker is None:
        return []
    try:
        block = find_method(worker).block
    except Refusal:
        return []
    return [name for call in names.calls(block) if (name := called(call)) is not None]


def _holders(file: SourceFile, function: cst.FunctionDef, attribute: str) -> frozenset[str]:
    """What a function calls the zeroer: the attribute, and local names for it."""
    quoted = (f'"{attribute}"', f"'{attribute}'", f".{attribute}")
    local = {
        name
        for name, value in names.assignments(function.body)
        if any(text in file.module.code_for_node(value) for text in quoted)
    }
    return frozenset({attribute} | local)


def _surely_warms(file: SourceFile, block: cst.BaseSuite, holders: frozenset[str]) -> bool:
    """Whether a block warms the zeroer up on a condition on the runner or the zeroer at most."""
    for statement in names.statements(block):
        if isinstance(statement, cst.SimpleStatementLine):
            if any(_is_warmup(call, holders) for call in names.calls(statement)):
                return True
        elif _always_entered(file, statement, holders) and any(
            _surely_warms(file, suite, holders) for suite in [*names.suites(statement)][:1]
        ):
            return True
        if any(isinstance(node, cst.Return) for node in names.descend(statement)):
            return False
    return False


def _always_entered(
    file: SourceFile, statement: cst.BaseStatement, holders: frozenset[str]
) -> bool:
    """Whether a statement's first suite runs wherever there is a zeroer to warm up."""
    if isinstance(statement, cst.If):
        return _asks_for(file, statement.test, holders)
    return isinstance(statement, (cst.With, cst.Try))


def _is_warmup(call: cst.Call, holders: frozenset[str]) -> bool:
    receiver, _, name = (names.dotted(call.func) or "").rpartition(".")
    return name == _WARMUP and receiver.rpartition(".")[2] in holders


def _asks_for(file: SourceFile, test: cst.BaseExpression, holders: frozenset[str]) -> bool:
    """Whether a test is of the V2 flag or the zeroer and of nothing else."""
    if isinstance(test, cst.BooleanOperation):
        return all(_asks_for(file, side, holders) for side in (test.left, test.right))
    code = file.module.code_for_node(test)
    paths = {names.dotted(node) for node in names.descend(test) if isinstance(node, cst.Attribute)}
    words = {str(path).rpartition(".")[2] for path in paths} | set(code.split())
    return bool(words & (holders | {"use_v2_model_runner"}))


def helpers(sources: Sources) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Other warm-up modules of the tree that zero blocks, and the model types they are for.

    Empty where the module asks for no model type, or for none that can be read off the source.
    """
    for relative in sources.checkout.python_files(KERNEL_WARMUP.rpartition("/")[0]):
        try:
            data = sources.checkout.read(relative) or b""
        except UnreadableFile:
            continue
        if METHOD.encode() in data and (file := sources.read(relative)) is not None:
            yield relative.rpartition("/")[2], tuple(_model_types(file))


def _model_types(file: SourceFile) -> Iterator[str]:
    """The strings of the module's constants that a function compares a model type with."""
    asked = {
        names.dotted(target.comparator)
        for statement in names.walk(file.module)
        if isinstance(statement, cst.FunctionDef)
        for node in names.descend(statement.body)
        if isinstance(node, cst.Comparison) and "model_type" in (names.dotted(node.left) or "")
        for target in node.comparisons
        if isinstance(target.operator, (cst.In, cst.NotIn))
    }
    for name, value in names.assignments(file.module):
        if name in asked:
            for node in names.descend(value):
                if isinstance(node, cst.SimpleString):
                    yield str(node.evaluated_value)
