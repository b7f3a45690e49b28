"""What a worker calls its V1 runner, and how it tells it from V2's."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal
from codemods.recipes.warm_up.method import (
    RUNNER_METHODS,
    V1_DUMMY_RUNS,
    Method,
    called,
)
from codemods.transforms import names

V2_FLAG = "use_v2_model_runner"
# What text a call of it starts with: where there is none, no tree need be searched.
_CALLED_FLAG = re.compile(rb"\b%b\b[\s\\)]*\(" % V2_FLAG.encode())


def is_v2_test(test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return is_v2_test(test.left) or is_v2_test(test.right)
    path = names.dotted(test)
    return path is not None and _is_v2(path) and not _denies(path)


_NEGATIONS = frozenset(
    {"disable", "disabled", "disables", "no", "non", "not", "skip", "without", "unsupported"}
)


def _is_v2(path: str) -> bool:
    return "v2" in path.split(".")[-1].lower().split("_")


def _denies(path: str) -> bool:
    return bool(_NEGATIONS & set(path.split(".")[-1].lower().split("_")))


def model_runner(method: Method) -> str:
    """What the method calls the model runner: the one whose dummy runs it makes."""
    found = {
        path.rpartition(".")[0]
        for call in names.calls(method.block)
        if (path := names.dotted(call.func)) and path.split(".")[-1] in RUNNER_METHODS
    }
    own = {path for path in found if path.startswith("self.")}
    own |= {
        path
        for name, value in names.assignments(method.block)
        if name in found and (path := names.dotted(value)) and path.startswith("self.")
    }
    if "self.model_runner" in own or (not own and b"self.model_runner" in method.file.data):
        return "self.model_runner"
    if not own:
        raise Refusal(
            Reason.AMBIGUOUS,
            "expected self.model_runner, found no such attribute and no other runner that the "
            "dummy runs are made on",
            method.file.name,
            method.line(method.function),
        )
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
    asked = [
        [path for operand in _operands(test) if (path := names.dotted(operand)) and _is_v2(path)]
        for test in _tests(anchor)
    ]
    unclear = next(
        (found for found in asked if len(set(found)) > 1 or any(map(_denies, found))), None
    )
    if unclear is not None:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the branch asks {' and '.join(dict.fromkeys(unclear))}; which of them means that V2 "
            "runs cannot be read off the source",
            method.file.name,
            method.line(anchor),
        )
    if own.encode() in method.file.data and _is_read(method, own):
        return own
    for found in asked:
        if found:
            return found[0]
    knows_v2 = any(called(call) in method.v2_warmups for call in names.calls(method.block))
    if knows_v2 or _has_an_arm_of_another(anchor):
        raise Refusal(
            Reason.NO_ANCHOR,
            f"expected {own} to tell the V2 runner from V1, found "
            f"{method.file.module.code_for_node(anchor).strip().splitlines()[0]!r}",
            method.file.name,
            method.line(anchor),
        )
    return None


def _has_an_arm_of_another(anchor: cst.BaseStatement) -> bool:
    """Whether the branch calls something in an arm that makes none of V1's dummy runs."""
    arm: cst.If | cst.Else | None = anchor if isinstance(anchor, cst.If) else None
    while arm is not None:
        calls = [called(call) for call in names.calls(arm.body)]
        if calls and not V1_DUMMY_RUNS & set(calls):
            return True
        arm = arm.orelse if isinstance(arm, cst.If) else None
    return False


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
    """What a test takes the truth of: not what it compares or gives to a function."""
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
