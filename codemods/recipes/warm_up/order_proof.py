"""The `order` proof: every path calls the warm-up, and before the monitor is activated.

Over the control flow of the rewritten worker's warm-up method, not by line numbers; `check` asks
the same of a call that is there already (`worker_call`).
"""

from __future__ import annotations

from codemods.engine.checkout import WORKER
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.subject import Side, Subject
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.method import METHOD, find_method
from codemods.recipes.warm_up.v2_flag import model_runner
from codemods.recipes.warm_up.worker_call import Calls, Target, find_calls

NAME = "order"


def prove(subject: Subject, _: Options, *, function: str, v1_only: bool = True) -> Proof:
    """The proof for the warm-up `function`, which is for both runners where not `v1_only`."""
    if not subject.in_force(edit_names.WORKER):
        found = subject.edit(edit_names.WORKER)
        return skipped(NAME, found.detail if found else "the worker edit was left out")
    try:
        calls = _calls(subject.after, function, v1_only)
        if calls is None:
            return failed(NAME, f"no method {METHOD} in {subject.after.name(WORKER)}")
        before: Calls | None = calls
        if subject.plan.changes:  # a change that leaves none need not be held against the old ones
            before = _calls(subject.before, function, v1_only) if calls.early_returns else None
    except Refusal as refusal:
        return failed(NAME, refusal.detail)
    known = len(before.early_returns) if before is not None else 0
    return _verdict(calls, function, known, subject.after.name(WORKER))


def prove_module(source: bytes, function: str, *, v1_only: bool = True) -> Proof:
    """The proof on a worker module alone: what its names lead to is not looked at."""
    file = SourceFile("worker", source)
    calls = find_calls(file, Target(function, v1_only=v1_only))
    if calls is None:
        return failed(NAME, f"no method {METHOD} in the worker")
    return _verdict(calls, function, len(calls.early_returns), "worker")


def _calls(side: Side, function: str, v1_only: bool) -> Calls | None:
    sources = Sources(side.checkout)
    file = sources.read(WORKER)
    if file is None or file.tree is None:
        return None
    runner = model_runner(find_method(file))
    return find_calls(file, Target(function, runner, v1_only, sources))


def _verdict(calls: Calls, function: str, early_before: int, file: str) -> Proof:
    """The row; `early_before` returns ahead of the branch were there before the rewrite."""
    if not calls.sites:
        return failed(NAME, f"{METHOD} never calls {function} ({file})")
    figures: dict[str, int | float | str] = {
        what: len(lines) for what, lines in calls.figures.items()
    }
    early = sorted(set(calls.early_returns))
    complaints = [one.why for one in calls.problems]
    if len(early) > early_before:
        complaints += [f"line {line} returns before the warm-up, ahead of it all" for line in early]
    if complaints:
        return failed(NAME, f"{file}: {'; '.join(complaints)}", **figures)
    end = "the JIT monitor is activated" if calls.has_monitor else "the method returns"
    let_off = (
        f"; line {', '.join(map(str, early))} of {file} still returns ahead of all runner warm-ups"
        if early
        else ""
    )
    return passed(
        NAME,
        f"every path of the worker's start calls the warm-up before {end}{let_off}",
        **figures,
    )
