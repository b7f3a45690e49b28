"""The `worker` edit: the GPU worker calls the warm-up before the JIT monitor is activated.

The place is found by meaning: behind the statement that runs the V2 warm-up or the V1 sampler's
dummy run, at the same level as it, so that every pipeline rank and every kind of model passes it
and nothing that belongs to the monitor, or declares the engine started, stands before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.sources import Edited, Refusal, SourceFile
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.anchor import find_anchor
from codemods.recipes.warm_up.method import (
    METHOD,
    V2_WARMUP,
    Method,
    called,
    find_method,
)
from codemods.recipes.warm_up.v2_flag import is_v2_test, model_runner, v2_flag
from codemods.transforms import names
from codemods.transforms.extend_import import extended
from codemods.transforms.statements import insert_after, parse_statements, replace

WARMUP_MODULE = "gpu.warmup"


@dataclass(frozen=True)
class Call:
    """The call of a recipe's warm-up: `purpose` ends the comment above it.

    `v1_only` is for a warm-up that must not be given the V2 runner.
    """

    function: str
    purpose: str
    v1_only: bool = True

    def text(self, flag: str | None, imported: str, runner: str) -> str:
        """The statements to insert, with four-space indents; `flag` tells V2 from V1."""
        if flag is None:
            return f"# {self._sentence}\n{imported}{self.function}({runner})\n"
        indented = f"{imported}    " if imported else ""
        return (
            f"if not {flag}:\n"
            f"    # V1: {self._sentence[0].lower()}{self._sentence[1:]}\n"
            f"    {indented}{self.function}({runner})\n"
        )

    @property
    def _sentence(self) -> str:
        return f"Compile {self.purpose} before the first request."


def edit(worker: SourceFile, call: Call, function_is_there: bool) -> Edited:
    """What becomes of the worker; raises Refusal."""
    method = find_method(worker)
    existing = existing_call(method, call.function)
    if existing is not None:
        statement, in_time = existing
        if call.v1_only and _for_v2_alone(method, statement):
            raise Refusal(
                Reason.NO_ANCHOR,
                f"{call.function} is called for the V2 runner alone; move the call out of that arm",
                worker.name,
                method.line(statement),
            )
        if not call.v1_only and _for_one_runner(method, statement):
            raise Refusal(
                Reason.NO_ANCHOR,
                f"{call.function} is for both runners, and is called for one of them; "
                "move the call out of that arm",
                worker.name,
                method.line(statement),
            )
        if not in_time:
            raise Refusal(
                Reason.NO_ANCHOR,
                f"{call.function} is called after the JIT monitor is activated; "
                "move the call before it",
                worker.name,
                method.line(statement),
            )
        return Edited(
            Outcome(
                edit_names.WORKER,
                Status.PRESENT,
                Reason.ALREADY_PRESENT,
                f"{METHOD} calls {call.function}",
                worker.name,
                method.line(statement),
            )
        )
    if not function_is_there:
        raise Refusal(
            Reason.NO_WARMUP_MODULE,
            f"the call needs {call.function}, which this run does not add",
            worker.name,
        )
    _refuse_rebinding(method, call.function)
    anchor = find_anchor(method)
    flag = v2_flag(method, anchor) if call.v1_only else None
    module, imported = _with_import(worker.module, worker.name, call.function)
    runner = model_runner(method)
    text = call.text(flag, imported, runner)
    first, *rest = parse_statements(module, text)
    first = first.with_changes(leading_lines=[cst.EmptyLine(indent=False), *first.leading_lines])
    changed = insert_after(module, anchor, [first, *rest])
    outcome = Outcome(
        edit_names.WORKER,
        Status.EDIT,
        Reason.ADDED,
        f"{METHOD} calls {call.function} {_place(method)}",
        worker.name,
    )
    return Edited(outcome, changed, marker=f"{call.function}({runner})")


def _refuse_rebinding(method: Method, name: str) -> None:
    """Refuse a worker in which our function's name stands for something else than an import."""
    module = method.file.module
    if name.encode() not in method.file.data:
        return
    rebound = [
        *names.functions(module, name),
        *(one for one in names.classes(module) if one.name.value == name),
        *(one for one, _ in names.assignments(module) if one == name),
        *(
            node
            for part in (method.function.params, method.block)
            for node in names.descend(part)
            if _binds(node) == name
        ),
    ]
    if rebound:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the module uses the name {name} for something of its own; rename that",
            method.file.name,
            method.line(method.function),
        )


def _binds(node: cst.CSTNode) -> str | None:
    """The name that a node binds within a function, other than by an import."""
    target: cst.CSTNode | None = None
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)):
        target = node.target
    elif isinstance(node, (cst.AsName, cst.Param, cst.FunctionDef, cst.ClassDef)):
        target = node.name
    return target.value if isinstance(target, cst.Name) else None


def existing_call(method: Method, function: str) -> tuple[cst.BaseStatement, bool] | None:
    """The statement of the method that calls our function, and whether the monitor comes later."""
    calling = [
        statement
        for statement in method.leaves
        if any(called(call) == function for call in names.calls(statement))
    ]
    if not calling:
        return None
    place = method.leaves.index(calling[0])
    return calling[0], not method.monitors or place < method.monitors[0]


def _for_v2_alone(method: Method, statement: cst.BaseStatement) -> bool:
    """Whether a statement stands in the arm that only V2 takes."""
    return any(
        isinstance(one, cst.If)
        and is_v2_test(one.test)
        and any(leaf is statement for leaf in names.walk(one.body))
        for one in names.walk(method.block)
    )


def _for_one_runner(method: Method, statement: cst.BaseStatement) -> bool:
    """Whether a statement stands in an arm of an `if` that asks which runner there is."""
    return any(
        isinstance(one, cst.If)
        and _asks_for_v2(one.test)
        and any(leaf is statement for suite in names.suites(one) for leaf in names.walk(suite))
        for one in names.walk(method.block)
    )


def _asks_for_v2(test: cst.BaseExpression) -> bool:
    inner = test.expression if isinstance(test, cst.UnaryOperation) else test
    return is_v2_test(inner)


def _place(method: Method) -> str:
    if method.monitors:
        return "before the JIT monitor is activated"
    return "at the end of the warm-up; the tree has no JIT monitor"


def _with_import(module: cst.Module, name: str, function: str) -> tuple[cst.Module, str]:
    """The module with the function imported, or the import to write beside the call."""
    for statement in names.statements(module):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            if isinstance(small, cst.ImportFrom) and _is_warmup_import(small):
                if _binds_aliases_alone(statement):
                    # As isort has it, names with and without an alias stand on lines of their own.
                    line = f"from {names.import_module(small)} import {function}\n"
                    return insert_after(module, statement, parse_statements(module, line)), ""
                return replace(module, {small: extended(small, function)}), ""
    if any(isinstance(one, cst.Try) and _imports_warmup(one) for one in names.walk(module)):
        raise Refusal(
            Reason.NO_ANCHOR,
            f"the worker does without {WARMUP_MODULE} where its import fails; "
            "--skip worker leaves the import and the call to you",
            name,
        )
    return module, f"from .{WARMUP_MODULE} import {function}\n\n"


def _binds_aliases_alone(statement: cst.SimpleStatementLine) -> bool:
    *before, last = statement.body
    return (
        not before
        and isinstance(last, cst.ImportFrom)
        and not isinstance(last.names, cst.ImportStar)
        and all(alias.asname for alias in last.names)
    )


def _imports_warmup(statement: cst.Try) -> bool:
    return any(
        isinstance(node, cst.ImportFrom) and _is_warmup_import(node)
        for node in names.descend(statement)
    )


def _is_warmup_import(node: cst.ImportFrom) -> bool:
    return (
        not isinstance(node.names, cst.ImportStar)
        and f".{names.import_module(node)}".endswith(f".{WARMUP_MODULE}")
        and any(alias.evaluated_name == V2_WARMUP for alias in node.names)
    )


def imported_from(worker: SourceFile, function: str) -> str | None:
    """The module our function is imported from where the worker calls it already."""
    method = find_method(worker)
    source = method.bound.get(function)
    return source.module if source is not None and existing_call(method, function) else None
