"""The worker's warm-up method: where its V1/V2 branch ends, and what activates the JIT monitor.

Both are found by what they do, through the class's own methods too, and not by where they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from codemods.outcome import Reason
from codemods.slot_mapping.source_file import Refusal, SourceFile
from codemods.transforms import names
from codemods.transforms.statements import line_of

METHOD = "compile_or_warm_up_model"
V2_WARMUP = "warmup_kernels"
V1_DUMMY_RUNS = frozenset({"_dummy_sampler_run", "_dummy_pooler_run"})
RUNNER_METHODS = V1_DUMMY_RUNS | {"_dummy_run", "capture_model", "maybe_remove_all_loras"}
V2_FLAG = "use_v2_model_runner"
# What text a call of it starts with: where there is none, no tree need be searched.
_CALLED_FLAG = re.compile(rb"\b%b\b[\s\\)]*\(" % V2_FLAG.encode())


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
    def bound_in_class(self) -> dict[str, names.Imported]:
        """The same with the imports of the class's other methods, for helpers."""
        return self.bound | {
            one.local: one
            for helper in names.walk(self.owner.body)
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
    """The method itself, or the private one that it hands the whole warm-up to (as of 0.33)."""
    if any(called(call) in V1_DUMMY_RUNS | {V2_WARMUP} for call in names.calls(method.block)):
        return method
    for name in dict.fromkeys(_own_methods(method.block)):
        for helper in names.functions(method.owner.body, name):
            inner = Method(method.file, method.owner, helper)
            if any(_runs_warmup(inner, one) for one in inner.leaves) and (
                inner.monitors or any(map(_returns, inner.leaves))
            ):
                return _doing_the_work(inner)
    return method


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


def find_anchor(method: Method) -> cst.BaseStatement:
    """The statement behind which the call goes; raises Refusal."""
    block = method.block
    while True:
        body = names.statements(block)
        warming = [one for one in body if _runs_warmup(method, one)]
        if not warming:
            raise Refusal(
                Reason.NO_ANCHOR,
                f"expected {METHOD} to run {V2_WARMUP} or a V1 dummy run of the sampler or "
                "pooler, found neither; --skip worker leaves the call to you",
                method.file.name,
                method.line(method.function),
            )
        anchor = warming[-1]
        inner = _always_run(anchor)
        if inner is None or not any(_stops_or_monitors(method, one) for one in [anchor]):
            break
        block = inner
    before = body[: body.index(anchor) + 1]
    monitor = next((one for one in before if activates_monitor(method, one)), None)
    if monitor is not None:
        raise Refusal(
            Reason.NO_ANCHOR,
            "the JIT monitor is activated before or within the V1/V2 warm-up branch, "
            "so there is no place between the two",
            method.file.name,
            method.line(monitor),
        )
    started = next((one for one in _leaves_until(method, anchor) if _declares_start(one)), None)
    if started is not None:
        raise Refusal(
            Reason.NO_ANCHOR,
            "the engine is declared started before the V1/V2 warm-up branch ends, "
            "so that a call behind the branch would come too late",
            method.file.name,
            method.line(started),
        )
    for arm in _v1_arms(method, anchor):
        for node in names.descend(arm):
            if isinstance(node, (cst.Return, cst.Raise)):
                raise Refusal(
                    Reason.NO_ANCHOR,
                    "the V1 arm of the warm-up branch can leave the method, "
                    "so that a call behind the branch would be passed over",
                    method.file.name,
                    method.line(anchor),
                )
    return anchor


def _leaves_until(method: Method, anchor: cst.BaseStatement) -> Iterator[cst.BaseStatement]:
    """The method's simple statements up to the end of the anchor."""
    last = [*_leaf_statements_of(anchor)][-1]
    for statement in method.leaves:
        yield statement
        if statement is last:
            return


def _declares_start(statement: cst.BaseStatement) -> bool:
    """Whether a statement sets or calls something that is named for the engine having started."""
    for node in names.descend(statement):
        told: list[cst.BaseExpression] = []
        if isinstance(node, cst.Assign):
            told = [target.target for target in node.targets]
        elif isinstance(node, cst.Call):
            told = [node.func]
        for inner in names.descend(told):
            text = ""
            if isinstance(inner, cst.Name):
                text = inner.value
            elif isinstance(inner, cst.SimpleString):
                text = str(inner.evaluated_value)
            if "started" in text.lower().split("_"):
                return True
    return False


def _stops_or_monitors(method: Method, statement: cst.BaseStatement) -> bool:
    return activates_monitor(method, statement) or any(
        isinstance(node, cst.Return) for node in names.descend(statement)
    )


def _always_run(statement: cst.BaseStatement) -> cst.BaseSuite | None:
    """The suite of a statement that runs it in any case."""
    return statement.body if isinstance(statement, (cst.With, cst.Try)) else None


def _v1_arms(method: Method, anchor: cst.BaseStatement) -> Iterator[cst.BaseSuite]:
    """The suites of the branch in which V2 is not known to run."""
    if not isinstance(anchor, cst.If):
        yield from names.suites(anchor)
        return
    arm: cst.If | cst.Else | None = anchor
    while arm is not None:
        if isinstance(arm, cst.Else):
            yield arm.body
            return
        if not _is_v2_test(arm.test):
            yield arm.body
        arm = arm.orelse


def _is_v2_test(test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _is_v2_test(test.left) or _is_v2_test(test.right)
    path = names.dotted(test)
    return path is not None and _names_v2(path.split(".")[-1])


def _names_v2(name: str) -> bool:
    return "v2" in name.lower().split("_")


def model_runner(method: Method) -> str:
    """What the method calls the model runner: the one whose dummy runs it makes."""
    found = {
        path.rpartition(".")[0]
        for call in names.calls(method.block)
        if (path := names.dotted(call.func)) and path.split(".")[-1] in RUNNER_METHODS
    }
    own = {path for path in found if path.startswith("self.")}
    if not own or "self.model_runner" in own:
        return "self.model_runner"
    if len(own) > 1:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the dummy runs are made on several runners: {', '.join(sorted(own))}",
            method.file.name,
            method.line(method.function),
        )
    return own.pop()


def v2_flag(method: Method, anchor: cst.BaseStatement) -> str | None:
    """The expression that tells V2 from V1, None in a class that knows no V2."""
    own = f"self.{V2_FLAG}"
    if own.encode() in method.file.data and _is_read(method, own):
        return own
    for test in _tests(anchor):
        for operand in _operands(test):
            path = names.dotted(operand)
            if path and _names_v2(path.split(".")[-1]):
                return path
    if any(called(call) in method.v2_warmups for call in names.calls(method.block)):
        raise Refusal(
            Reason.NO_ANCHOR,
            f"expected {own} to tell the V2 runner from V1, found "
            f"{method.file.module.code_for_node(anchor).strip().splitlines()[0]!r}",
            method.file.name,
            method.line(anchor),
        )
    return None


def _is_read(method: Method, path: str) -> bool:
    """Whether a class's methods use an attribute as a value, and none of them calls it."""
    bodies = [one.body for one in names.walk(method.owner.body) if isinstance(one, cst.FunctionDef)]
    if _CALLED_FLAG.search(method.file.data) and any(
        names.dotted(call.func) == path for body in bodies for call in names.calls(body)
    ):
        return False
    return any(
        isinstance(node, cst.Attribute) and names.dotted(node) == path
        for body in bodies
        for node in names.descend(body)
    )


def _operands(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a test takes the truth of: not what it compares or hands to a function."""
    if isinstance(test, cst.BooleanOperation):
        yield from _operands(test.left)
        yield from _operands(test.right)
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _operands(test.expression)
    else:
        yield test


def _tests(statement: cst.BaseStatement) -> list[cst.BaseExpression]:
    tests = []
    arm: cst.CSTNode | None = statement
    while isinstance(arm, cst.If):
        tests.append(arm.test)
        arm = arm.orelse
    return tests


def _runs_warmup(method: Method, statement: cst.BaseStatement) -> bool:
    """Whether a statement runs V2's warm-up or V1's dummy runs, through the class's methods too."""
    warmups = method.v2_warmups | V1_DUMMY_RUNS
    return _reaches(method, statement, lambda call: called(call) in warmups, set())


def activates_monitor(method: Method, statement: cst.BaseStatement) -> bool:
    """Whether a statement activates the JIT monitor, through the class's methods too."""
    return _reaches(method, statement, lambda call: _is_monitor(method, call), set())


def _reaches(
    method: Method, node: cst.CSTNode, test: Callable[[cst.Call], bool], seen: set[str]
) -> bool:
    if any(test(call) for call in names.calls(node)):
        return True
    for name in _own_methods(node):
        if name not in seen:
            seen.add(name)
            for helper in names.functions(method.owner.body, name):
                if _reaches(method, helper.body, test, seen):
                    return True
    return False


def _is_monitor(method: Method, call: cst.Call) -> bool:
    path = names.dotted(call.func)
    if path is None:
        return False
    first, *rest = path.split(".")
    source = method.bound_in_class.get(first)
    if source is not None:
        path = ".".join(filter(None, [source.module, source.name, *rest]))
    words = path.lower().replace(".", "_").split("_")
    if "deactivate" in words or "is" in words[-2:-1]:
        return False
    return "monitor" in words and bool({"jit", "triton", "compile", "compilation"} & set(words))


def called(call: cst.Call) -> str | None:
    path = names.dotted(call.func)
    return path.split(".")[-1] if path else None


def _leaf_statements_of(statement: cst.BaseStatement) -> Iterator[cst.BaseStatement]:
    inner = [leaf for suite in names.suites(statement) for leaf in _leaf_statements(suite)]
    yield from inner or [statement]


def _leaf_statements(block: cst.BaseSuite) -> Iterator[cst.BaseStatement]:
    """The method's simple statements in source order, and compound ones written on one line."""
    for statement in names.walk(block):
        if isinstance(statement, cst.SimpleStatementLine) or not any(
            names.statements(suite) for suite in names.suites(statement)
        ):
            yield statement
