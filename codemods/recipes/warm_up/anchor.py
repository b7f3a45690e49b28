"""Where the call goes: behind the V1/V2 branch, as long as nothing there makes it too late."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal
from codemods.recipes.warm_up.method import (
    METHOD,
    V2_WARMUP,
    Method,
    activates_monitor,
    leaves_of,
    runs_warmup,
)
from codemods.recipes.warm_up.v2_flag import is_v2_test
from codemods.transforms import names


def find_anchor(method: Method) -> cst.BaseStatement:
    """The statement behind which the call goes; raises Refusal."""
    block = method.block
    while True:
        body = names.statements(block)
        warming = [one for one in body if runs_warmup(method, one)]
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
    if isinstance(anchor, cst.SimpleStatementLine) and _returns(anchor):
        raise Refusal(
            Reason.NO_ANCHOR,
            "the method returns with the warm-up, so that nothing can come behind it",
            method.file.name,
            method.line(anchor),
        )
    before = body[: body.index(anchor) + 1]
    for one in before[:-1]:
        if isinstance(one, cst.If) and _returns(one) and _asks_for_the_rank(method, one):
            raise Refusal(
                Reason.NO_ANCHOR,
                "some pipeline ranks leave the method before the V1/V2 warm-up branch, "
                "so that a call behind it would not warm them",
                method.file.name,
                method.line(one),
            )
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
                    "so that a call behind the branch would be skipped",
                    method.file.name,
                    method.line(anchor),
                )
    return anchor


def _returns(statement: cst.BaseStatement) -> bool:
    return any(isinstance(node, cst.Return) for node in names.descend(statement))


def _asks_for_the_rank(method: Method, statement: cst.If) -> bool:
    return "_rank" in method.file.module.code_for_node(statement.test)


def _leaves_until(method: Method, anchor: cst.BaseStatement) -> Iterator[cst.BaseStatement]:
    """The method's simple statements up to the end of the anchor."""
    last = [*leaves_of(anchor)][-1]
    for statement in method.leaves:
        yield statement
        if statement is last:
            return


def _declares_start(statement: cst.BaseStatement) -> bool:
    """Whether a statement sets or calls something that is named for the engine having started."""
    for node in names.descend(statement):
        named: list[cst.BaseExpression] = []
        if isinstance(node, cst.Assign):
            named = [target.target for target in node.targets]
        elif isinstance(node, cst.Call):
            named = [node.func]
        for inner in names.descend(named):
            text = ""
            if isinstance(inner, cst.Name):
                text = inner.value
            elif isinstance(inner, cst.SimpleString):
                text = str(inner.evaluated_value)
            if "started" in text.lower().split("_"):
                return True
    return False


def _stops_or_monitors(method: Method, statement: cst.BaseStatement) -> bool:
    return activates_monitor(method, statement) or _returns(statement)


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
        if not is_v2_test(arm.test):
            yield arm.body
        arm = arm.orelse
