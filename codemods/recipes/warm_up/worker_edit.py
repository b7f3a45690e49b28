"""The `worker` edit: the GPU worker calls the warm-up before the JIT monitor is activated.

The place is found by meaning: behind the statement that runs the V2 warm-up or the V1 sampler's
dummy run, at the same level as it, so that every pipeline rank and every kind of model passes it
and nothing that belongs to the monitor, or declares the engine started, comes before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from codemods.engine.checkout import WORKER
from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.recipe import Run
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.anchor import find_anchor
from codemods.recipes.warm_up.method import METHOD, V2_WARMUP, Method, find_method
from codemods.recipes.warm_up.v2_flag import model_runner, v2_flag
from codemods.recipes.warm_up.warmup_edit import require_function
from codemods.transforms import names
from codemods.transforms.extend_import import extended
from codemods.transforms.statements import insert_after, parse_statements, replace

if TYPE_CHECKING:
    from codemods.recipes.warm_up.worker_call import Calls

WARMUP_MODULE = "gpu.warmup"


class Call(NamedTuple):
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


def decide(run: Run, call: Call) -> None:
    """Decide the edit for a recipe, once its `warmup` edit is decided."""
    with run.edit(edit_names.WORKER, run.sources.checkout.name(WORKER)):
        file = run.sources.read(WORKER)
        if file is None:
            raise Refusal(Reason.NO_ANCHOR, f"there is no {WORKER}")
        require_function(run, file, call.function)
        sources = run.sources_after()
        edited = edit(file, call, sources)
        if edited.outcome.status is Status.EDIT and not run.makes(edit_names.WARMUP):
            _require_fit(edited, file, call, sources)
        run.take(edited, file)


def edit(worker: SourceFile, call: Call, sources: Sources) -> Edited:
    """Add the call to the worker, in a tree that has the function; raises Refusal.

    `sources` are the tree's files as the other edits leave them.
    """
    method = find_method(worker)
    calls = existing_calls(worker, call, sources)
    if calls is not None and calls.sites:
        return _existing(method, call, calls, sources)
    _refuse_rebinding(method, call.function, sources)
    anchor = find_anchor(method)
    flag = v2_flag(method, anchor) if call.v1_only else None
    module, imported = _with_import(worker, call.function, sources)
    runner = model_runner(method)
    text = call.text(flag, imported, runner)
    first, *rest = parse_statements(module, text)
    first = first.with_changes(leading_lines=[cst.EmptyLine(indent=False), *first.leading_lines])
    changed = insert_after(module, anchor, [first, *rest])
    outcome = Outcome(
        edit_names.WORKER,
        Status.EDIT,
        Reason.ADDED,
        f"{method.function.name.value} calls {call.function} {_place(method)}",
        worker.name,
    )
    return Edited(outcome, changed, marker=f"{call.function}({runner})")


def _require_fit(edited: Edited, worker: SourceFile, call: Call, sources: Sources) -> None:
    """Refuse a call that does not fit the function that the tree has already."""
    assert edited.module is not None
    made = SourceFile.made(worker.name, edited.module.bytes, edited.module)
    calls = existing_calls(made, call, sources)
    for problem in calls.problems if calls is not None else ():
        raise Refusal(
            Reason.NOT_REACHED,
            f"expected {call.function} to be one that the worker can call; found that with the "
            f"call put in, {problem.why}; change the function, or --replace it",
            worker.name,
        )


def existing_calls(worker: SourceFile, call: Call, sources: Sources) -> Calls | None:
    """The worker's calls of the function; None where it never names it."""
    if call.function.encode() not in worker.data:
        return None
    from codemods.recipes.warm_up.worker_call import Target, find_calls  # most trees have no call

    runner = model_runner(find_method(worker))
    return find_calls(worker, Target(call.function, runner, call.v1_only, sources))


def _existing(method: Method, call: Call, calls: Calls, sources: Sources) -> Edited:
    """The outcome where a call is there: that it does, that its import is added, or a refusal."""
    worker = method.file
    site = calls.sites[0]
    if not calls.problems:
        return Edited(
            Outcome(
                edit_names.WORKER,
                Status.PRESENT,
                Reason.ALREADY_PRESENT,
                f"{site.method} calls {call.function}",
                worker.name,
                site.line,
            )
        )
    if all(problem.unimported for problem in calls.problems):
        module, imported = _with_import(worker, call.function, sources)
        again = SourceFile(worker.name, module.bytes)
        after = existing_calls(again, call, sources)
        if not imported and after is not None and not after.problems:
            detail = f"imports {call.function}, which {site.method} calls"
            outcome = Outcome(edit_names.WORKER, Status.EDIT, Reason.ADDED, detail, worker.name)
            return Edited(outcome, module)
    problem = next((one for one in calls.problems if not one.unimported), calls.problems[0])
    runner = " for the V1 runner" if call.v1_only else ""
    raise Refusal(
        Reason.NOT_REACHED,
        f"expected {METHOD} to call {call.function}{runner} on every path, behind the V1/V2 "
        f"branch and before the JIT monitor; found that {problem.why}; fix the call, or take it "
        "out and run again",
        worker.name,
        problem.line,
    )


def _refuse_rebinding(method: Method, name: str, sources: Sources) -> None:
    """Refuse a worker in which our function's name means something else."""
    module = method.file.module
    if name.encode() not in method.file.data:
        return
    from codemods.engine.bound import Unbound, bound  # most trees have no such name

    found = bound(sources, method.file, name)
    if isinstance(found, Unbound) and not found.nowhere:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the worker binds {name} and nothing calls it: {found.why}; fix or remove that",
            method.file.name,
            found.line,
        )
    rebound = [
        *names.functions(module, name),
        *(one for one in names.classes(module) if one.name.value == name),
        *(one for one, _ in names.assignments(module) if one == name),
        *(
            node
            for part in (method.function.params, method.block)
            for node in names.descend(part)
            if name in names.bound_by(node) and not isinstance(node, cst.ImportAlias)
        ),
    ]
    if rebound:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the module uses the name {name} for something of its own; rename that",
            method.file.name,
            method.line(method.function),
        )


def _place(method: Method) -> str:
    if method.monitors:
        return "before the JIT monitor is activated"
    return "at the end of the warm-up; the tree has no JIT monitor"


def _with_import(worker: SourceFile, function: str, sources: Sources) -> tuple[cst.Module, str]:
    """The module with the function imported, or the import to write beside the call."""
    module = worker.module
    if function.encode() in worker.data:
        from codemods.engine.bound import Bound, bound  # most trees have no such name

        if isinstance(bound(sources, worker, function), Bound):
            return module, ""
    for statement in names.statements(module):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            if isinstance(small, cst.ImportFrom) and _is_warmup_import(small):
                if _binds_aliases_alone(statement):
                    # As isort has it, names with and without an alias are on lines of their own.
                    line = f"from {names.import_module(small)} import {function}\n"
                    return insert_after(module, statement, parse_statements(module, line)), ""
                return replace(module, {small: extended(small, function)}), ""
    if any(isinstance(one, cst.Try) and _imports_warmup(one) for one in names.walk(module)):
        raise Refusal(
            Reason.NO_ANCHOR,
            f"the worker ignores a failed import of {WARMUP_MODULE}; "
            "--skip worker leaves the import and the call to you",
            worker.name,
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
