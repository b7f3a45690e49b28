"""Why a tree needs the fix: what its own warm-ups leave to be compiled while requests wait.

Read off the tree and not off its version. Since 0.25 `kernel_warmup` launches the kernel for some
engines. Files are parsed with `ast`, which is much faster than LibCST, and only those that name the
method; V1's runner of 300 kB is searched as text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from codemods.engine.checkout import RUNNER, WORKER
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.facts.names import (
    BLOCK_TABLE,
    BLOCK_TABLE_CLASS,
    METHOD,
    PARAMETER,
)
from codemods.recipes.warm_up.launches import Launches
from codemods.recipes.warm_up.method import find_method
from codemods.recipes.warm_up.warmup_edit import MODULE
from codemods.transforms import names
from codemods.transforms.jit import Scope, parameters

_FOLDER = "model_executor/warmup"
_ENTRY = "kernel_warmup"  # what the worker calls
_CALLED = re.compile(rb"\.%b\(" % METHOD.encode())
_DEFINED = re.compile(rb"^[ \t]*(?:async )?def (\w+)", re.MULTILINE)
_CLASSES = f"each class of {PARAMETER} (1, a multiple of 16, any other)"


class UpstreamWarmup(NamedTuple):
    """A function of the tree that launches the kernel before requests do.

    `sizes` are the block sizes of tables that it makes itself, None where it takes the runner's;
    `conditions` is what has to hold for it to be called, pooling models aside.
    """

    name: str
    sizes: tuple[int, ...] | None
    pooling: bool
    conditions: tuple[str, ...]


def of_fixed(function: str) -> str:
    """Why a tree with the fix in it needs nothing."""
    return (
        f"{function} launches the kernel before the first request, and {PARAMETER} is in "
        "do_not_specialize. So no request waits for a compile of it."
    )


def of_unlisted(function: str) -> str:
    """Why a tree needs the kernel edit alone."""
    return (
        f"{function} launches the kernel before the first request, but {PARAMETER} is "
        f"specialised. So requests compile it again for {_CLASSES} that this does not launch."
    )


def of_missing(
    sources: Sources, launches: Launches, own: str, *, listed: bool, is_there: bool
) -> str:
    """What is compiled while requests wait, where the worker does not call the warm-up `own`.

    `listed` says that the parameter is in do_not_specialize, `is_there` that the tree has `own`.
    """
    found = _warmups(sources)
    reported = _reported(sources)
    if found:
        return _in_part(found, _size_is_constant(launches), listed, reported)
    elsewhere = _elsewhere(sources, own)
    if elsewhere is not None:
        return (
            f"{elsewhere} calls {BLOCK_TABLE_CLASS}.{METHOD}, but the tool found no proof that "
            "it runs in every engine. In the others the method's Triton kernel "
            f"{_while_they_wait(listed)}. {reported}"
        )
    lead = f"{PARAMETER} is in do_not_specialize, but no" if listed else "No"
    if is_there:
        lead = f"The worker does not call {own}, and no other"
    return (
        f"{lead} warm-up calls {BLOCK_TABLE_CLASS}.{METHOD}. So its Triton kernel "
        f"{_while_they_wait(listed)}. {reported}"
    )


def _while_they_wait(listed: bool) -> str:
    if listed:
        return "is compiled while the first request waits"
    return f"is compiled while the first requests wait, once for {_CLASSES}"


def _in_part(found: list[UpstreamWarmup], constant: bool, listed: bool, reported: str) -> str:
    """The sentences for a tree that warms the kernel up for some engines."""
    warmup = found[0]
    tables = "on the runner's own tables" if warmup.sizes is None else _own_tables(found)
    only = [f"only where `{one}`" for one in warmup.conditions]
    only += [] if warmup.pooling else ["not for pooling models"]
    but = f", but {' and '.join(only)}" if only else ""
    sentences = [f"{warmup.name} launches the kernel {tables}{but}."]
    left_out = _left_out(warmup, constant)
    if left_out:
        waiting = "first request waits" if listed else "first requests wait"
        sentences.append(f"{left_out} compile it while their {waiting}.")
    if not listed:
        who = "All engines" if left_out else "Requests"
        sentences.append(f"{who} compile it again for {_CLASSES} that this does not launch.")
    nothing_missed = listed and not left_out
    last = "The tool found no engine that it leaves out." if nothing_missed else reported
    return " ".join([*sentences, last])


def _left_out(warmup: UpstreamWarmup, constant: bool) -> str:
    """The engines that the warm-up leaves out, to begin a sentence; "" for none."""
    engines = [] if warmup.pooling else ["pooling models"]
    if warmup.conditions:
        engines.append("engines for which it is not called")
    if warmup.sizes is not None:
        other = "block size or compile key" if constant else "compile key"
        engines.append(f"engines whose tables have another {other}")
    text = _listed(engines) if engines else ""
    return f"{text[:1].upper()}{text[1:]}"


def _own_tables(found: list[UpstreamWarmup]) -> str:
    sizes = found[0].sizes
    parts = [f"block sizes {_listed([*map(str, sizes)])}"] if sizes else []
    parts += [f"{one.name} makes other tables for some engines" for one in found[1:2]]
    return f"on tables of its own ({'; '.join(parts)})" if parts else "on tables of its own"


def _listed(items: list[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def _reported(sources: Sources) -> str:
    """The last sentence: whether a monitor reports these compiles."""
    worker = sources.read(WORKER)
    try:
        watched = worker is not None and bool(find_method(worker).monitors)
    except Refusal:
        watched = False
    if watched:
        return "The JIT monitor reports it."
    return "The tool found no monitor that reports it."


def _size_is_constant(launches: Launches) -> bool:
    """Whether each block size is a kernel of its own, as of 0.26."""
    if launches.method is None:
        return False
    constants = {
        one.name.value
        for kernel in launches.kernels
        for definition in kernel.definitions
        for one in parameters(definition)
        if Scope.of(kernel.file.module).is_constexpr(one)
    }
    return any(
        argument.keyword is not None
        and argument.keyword.value in constants
        and (names.dotted(argument.value) or "").endswith("block_size")
        for call in names.calls(launches.method[1].body)
        for argument in call.args
    )


def _elsewhere(sources: Sources, own: str) -> str | None:
    """A function beside our `own` that is a warm-up by its name, as some forks have."""
    for relative in (RUNNER, BLOCK_TABLE, WORKER, MODULE):
        file = _read(sources, relative)
        for call in _CALLED.finditer(file.data) if file else ():
            assert file is not None
            around = _DEFINED.findall(file.data, 0, call.start())
            name = around[-1].decode() if around else ""
            if name != own and "warm" in name.lower() and _calls(_parsed(file), name):
                return f"{name} of {file.name}"
    return None


def _calls(tree: ast.Module, name: str) -> bool:
    """Whether a function of that name calls the method: the text may be a comment, or behind it."""
    return any(
        isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and function.name == name
        and any(_is_call(node, METHOD) for node in ast.walk(function))
        for function in ast.walk(tree)
    )


def _read(sources: Sources, relative: str) -> SourceFile | None:
    try:
        return sources.read(relative)
    except Refusal:
        return None


# What the functions of the warm-up folder do


def _warmups(sources: Sources) -> list[UpstreamWarmup]:
    """The functions of the tree's warm-up folder that call the method, and are called."""
    files = {}
    for relative in sources.checkout.python_files(_FOLDER):
        file = _read(sources, relative)
        if file is not None and (_CALLED.search(file.data) or relative.endswith(f"/{_ENTRY}.py")):
            files[relative] = file
    if not any(_CALLED.search(file.data) for file in files.values()):
        return []
    trees = [_parsed(file) for file in files.values()]
    functions = [one for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef)]
    found = [
        _warmup(tree, function, [*guards, *inner])
        for tree in trees
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and (inner := _guards(function.body, METHOD)) is not None
        and (guards := _guards_on_the_way(functions, function.name)) is not None
    ]
    return sorted(found, key=lambda one: len(one.conditions))


def _parsed(file: SourceFile) -> ast.Module:
    try:
        return ast.parse(file.data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


class _Guard(NamedTuple):
    """A test on the way to a call, and how it has to come out."""

    test: ast.expr
    truth: bool


def _guards_on_the_way(
    functions: list[ast.FunctionDef], name: str, seen: frozenset[str] = frozenset()
) -> list[_Guard] | None:
    """The guards from the worker's `kernel_warmup` to the call of a function, None without one."""
    if name == _ENTRY:
        return []
    for caller in functions:
        inner = None if caller.name in seen | {name} else _guards(caller.body, name)
        if inner is not None:
            outer = _guards_on_the_way(functions, caller.name, seen | {name})
            if outer is not None:
                return [*outer, *inner]
    return None


def _guards(body: list[ast.stmt], name: str) -> list[_Guard] | None:
    """The guards of the first call of `name` in a block, None where it makes none."""
    passed: list[_Guard] = []
    for statement in body:
        if isinstance(statement, ast.If):
            for suite, truth in ((statement.body, True), (statement.orelse, False)):
                found = _guards(suite, name)
                if found is not None:
                    return [*passed, _Guard(statement.test, truth), *found]
            if isinstance(statement.body[-1], (ast.Return, ast.Raise)):
                passed.append(_Guard(statement.test, False))
        elif any(_is_call(node, name) for node in ast.walk(statement)):
            return passed
    return None


def _is_call(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return last == name


def _warmup(tree: ast.Module, function: ast.FunctionDef, guards: list[_Guard]) -> UpstreamWarmup:
    tests = [one for guard in guards for one in _operands(guard)]
    pooling = any("pooling" in ast.unparse(one.test) and not one.truth for one in tests)
    conditions = [_text(one) for one in tests if not _is_beside_the_point(one.test)]
    makes = any(_is_call(node, BLOCK_TABLE_CLASS) for node in ast.walk(function))
    sizes = _block_sizes(tree, function) if makes else None
    return UpstreamWarmup(function.name, sizes, not pooling, tuple(dict.fromkeys(conditions)))


def _operands(guard: _Guard) -> Iterator[_Guard]:
    """A guard as the tests that have to come out one way each."""
    test = guard.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(_Guard(test.operand, not guard.truth))
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is guard.truth:
        for value in test.values:
            yield from _operands(_Guard(value, guard.truth))
    else:
        yield guard


def _is_beside_the_point(test: ast.expr) -> bool:
    """Whether a test is of the runner's version, of pooling, or of there being any token."""
    text = ast.unparse(test)
    return re.search(r"v2|pooling|(?:<=|==) 0$|< 1$|is None$", text, re.IGNORECASE) is not None


_OPPOSITES = {ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def _text(guard: _Guard) -> str:
    """What has to hold, in Python."""
    test = guard.test
    if guard.truth:
        return ast.unparse(test)
    if isinstance(test, ast.Compare) and (opposite := _OPPOSITES.get(type(test.ops[0]))):
        return ast.unparse(ast.Compare(test.left, [opposite()], test.comparators))
    return ast.unparse(ast.UnaryOp(ast.Not(), test))


def _block_sizes(tree: ast.Module, function: ast.FunctionDef) -> tuple[int, ...]:
    """The integers that a module's constants, or the function, list as block sizes."""
    for node in [*ast.walk(function), *tree.body]:
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Tuple, ast.List)):
            named = " ".join(ast.unparse(target) for target in node.targets).lower()
            values = [getattr(one, "value", None) for one in node.value.elts]
            if "block_size" in named and all(isinstance(one, int) for one in values):
                return tuple(one for one in values if isinstance(one, int))
    return ()
