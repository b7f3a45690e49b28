"""The worker's warm-up method: what it runs, and what activates the JIT monitor.

Both are found by what they do, through the class's methods and the module's functions too, and not
by where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile
from codemods.transforms import names
from codemods.transforms.statements import line_of

METHOD = "compile_or_warm_up_model"
V2_WARMUP = "warmup_kernels"
V1_DUMMY_RUNS = frozenset({"_dummy_sampler_run", "_dummy_pooler_run"})
RUNNER_METHODS = V1_DUMMY_RUNS | {"_dummy_run", "capture_model", "maybe_remove_all_loras"}


@dataclass(frozen=True)
class Method:
    """The warm-up method and what its class and module bind."""

    file: SourceFile
    owner: cst.ClassDef
    function: cst.FunctionDef

    @property
    def block(self) -> cst.BaseSuite:
        return self.function.body

    @cached_property
    def bound(self) -> dict[str, names.Imported]:
        """What the imports of the module and of the method bind."""
        module = {one.local: one for one in names.imports(self.file.module)}
        return module | {one.local: one for one in names.imports(self.block)}

    @cached_property
    def bound_in_helpers(self) -> dict[str, names.Imported]:
        """The same with the imports of other functions of the file, for helpers."""
        return self.bound | {
            one.local: one
            for helper in (*names.walk(self.file.module), *names.walk(self.owner.body))
            if isinstance(helper, cst.FunctionDef)
            for one in names.imports(helper.body)
        }

    @cached_property
    def v2_warmups(self) -> frozenset[str]:
        """The names under which V2's warm-up can be called."""
        aliases = {one.local for one in self.bound.values() if one.name == V2_WARMUP}
        return frozenset({V2_WARMUP} | aliases)

    @cached_property
    def leaves(self) -> tuple[cst.BaseStatement, ...]:
        """Its simple statements in source order, and compound ones written on one line."""
        return tuple(_leaf_statements(self.block))

    @cached_property
    def monitors(self) -> tuple[int, ...]:
        """Which of the leaves activate the JIT monitor."""
        return tuple(i for i, one in enumerate(self.leaves) if activates_monitor(self, one))

    def line(self, statement: cst.BaseStatement) -> int:
        return line_of(self.file.module, statement)


def find_method(worker: SourceFile) -> Method:
    """`Worker.compile_or_warm_up_model`, or the one method of that name in the module."""
    found = [
        Method(worker, owner, function)
        for owner in names.classes(worker.module)
        for function in names.functions(owner.body, METHOD)
    ]
    if not found:
        raise Refusal(
            Reason.NO_ANCHOR,
            f"expected a class with a method {METHOD}, found none; "
            "--skip worker leaves the call to you",
            worker.name,
        )
    named = [method for method in found if method.owner.name.value == "Worker"] or found
    if len(named) > 1:
        places = ", ".join(f"line {method.line(method.function)}" for method in named)
        raise Refusal(
            Reason.AMBIGUOUS, f"{METHOD} is defined more than once: {places}", worker.name
        )
    return _doing_the_work(named[0])


def _doing_the_work(method: Method) -> Method:
    """The method itself, or the private one that it calls for the whole warm-up (as of 0.33)."""
    if any(called(call) in V1_DUMMY_RUNS | {V2_WARMUP} for call in names.calls(method.block)):
        return method
    found = [
        inner
        for name in dict.fromkeys(_own_methods(method.block))
        for helper in names.functions(method.owner.body, name)
        if _does_the_work(inner := Method(method.file, method.owner, helper))
    ]
    return _doing_the_work(found[0]) if len(found) == 1 else method


def _does_the_work(method: Method) -> bool:
    return any(runs_warmup(method, one) for one in method.leaves) and bool(
        method.monitors or any(map(_returns, method.leaves))
    )


def _own_methods(node: cst.CSTNode) -> Iterator[str]:
    """Names of the methods of `self` that a node calls."""
    for call in names.calls(node):
        path = names.dotted(call.func) or ""
        if path.startswith("self.") and path.count(".") == 1:
            yield path.removeprefix("self.")


def _returns(statement: cst.BaseStatement) -> bool:
    return any(
        isinstance(node, cst.Return) and node.value is not None for node in names.descend(statement)
    )


def runs_warmup(method: Method, statement: cst.BaseStatement) -> bool:
    """Whether a statement runs V2's warm-up or V1's dummy runs, through the class's methods too."""
    warmups = method.v2_warmups | V1_DUMMY_RUNS
    return _reaches(method, statement, lambda call: called(call) in warmups, set())


def activates_monitor(method: Method, statement: cst.BaseStatement) -> bool:
    """Whether a statement activates the JIT monitor, through the file's functions too."""
    return _reaches(method, statement, lambda call: _is_monitor(method, call), set())


def _reaches(
    method: Method, node: cst.CSTNode, test: Callable[[cst.Call], bool], seen: set[cst.CSTNode]
) -> bool:
    if any(test(call) for call in names.calls(node)):
        return True
    helpers = [
        helper
        for name in dict.fromkeys(_own_methods(node))
        for helper in names.functions(method.owner.body, name)
    ]
    helpers += [
        helper
        for name in dict.fromkeys(names.dotted(call.func) for call in names.calls(node))
        for helper in (names.functions(method.file.module, name) if name else ())
    ]
    for helper in helpers:
        if helper not in seen:
            seen.add(helper)
            if _reaches(method, helper.body, test, seen):
                return True
    return False


def _is_monitor(method: Method, call: cst.Call) -> bool:
    path = names.dotted(call.func)
    if path is None:
        return False
    first, *rest = path.split(".")
    source = method.bound_in_helpers.get(first)
    if source is not None:
        path = ".".join(filter(None, [source.module, source.name, *rest]))
    words = path.lower().replace(".", "_").split("_")
    if "deactivate" in words or "is" in words[-2:-1]:
        return False
    return "monitor" in words and bool({"jit", "triton", "compile", "compilation"} & set(words))


def called(call: cst.Call) -> str | None:
    path = names.dotted(call.func)
    return path.split(".")[-1] if path else None


def leaves_of(statement: cst.BaseStatement) -> Iterator[cst.BaseStatement]:
    inner = [leaf for suite in names.suites(statement) for leaf in _leaf_statements(suite)]
    yield from inner or [statement]


def _leaf_statements(block: cst.BaseSuite) -> Iterator[cst.BaseStatement]:
    """The method's simple statements in source order, and compound ones written on one line."""
    for statement in names.walk(block):
        if isinstance(statement, cst.SimpleStatementLine) or not any(
            names.statements(suite) for suite in names.suites(statement)
        ):
            yield statement
