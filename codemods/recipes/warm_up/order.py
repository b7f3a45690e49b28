"""Proof 3: the call of the warm-up reaches it, and comes before the monitor, on every path.

Over the control flow of the rewritten worker's warm-up method, not by line numbers; `check` asks
the same of a call that is there already (`call_paths`).
"""

from __future__ import annotations

import ast

from codemods.engine.checkout import WORKER
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.subject import Subject
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.call_paths import Calls, Target, find_calls
from codemods.recipes.warm_up.method import METHOD, find_method
from codemods.recipes.warm_up.v2_flag import model_runner

NAME = "order"


def prove(subject: Subject, _: Options, *, function: str, v1_only: bool = True) -> Proof:
    """The proof for the warm-up `function`, which is for both runners where not `v1_only`."""
    if not subject.in_force(edit_names.WORKER):
        found = subject.edit(edit_names.WORKER)
        return skipped(NAME, found.detail if found else "the worker edit was left out")
    sources = Sources(subject.after.checkout)
    try:
        file = sources.read(WORKER)
        if file is None or file.tree is None:
            return skipped(NAME, f"{subject.after.name(WORKER)} does not parse with this Python")
        runner = model_runner(find_method(file))
        return _verdict(find_calls(file, Target(function, runner, v1_only, sources)), function)
    except Refusal as refusal:
        return failed(NAME, refusal.detail)


def prove_module(tree: ast.Module, function: str, *, v1_only: bool = True) -> Proof:
    """The proof on a worker module's syntax tree alone: what its names lead to is not looked at."""
    file = SourceFile("worker", ast.unparse(tree).encode())
    return _verdict(find_calls(file, Target(function, v1_only=v1_only)), function)


def _verdict(calls: Calls | None, function: str) -> Proof:
    if calls is None:
        return failed(NAME, f"no method {METHOD} in the worker")
    if not calls.sites:
        return failed(NAME, f"{METHOD} never calls {function}")
    figures: dict[str, int | float | str] = {
        what: len(lines) for what, lines in calls.figures.items()
    }
    if calls.problems:
        return failed(NAME, "; ".join(one.why for one in calls.problems), **figures)
    end = "the monitor" if calls.has_monitor else "every return (the tree has no monitor)"
    return passed(
        NAME,
        f"the warm-up comes after the V1/V2 branch and before {end}, on every path",
        **figures,
    )
