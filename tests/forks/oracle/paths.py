"""Rule: on every V1 path the warm-up runs once, after the V1/V2 branch and before the monitor.

The method is run on sets of states: each statement takes the states that can reach it to those
that can leave it. Conditions on the V2 flag are decided by the mode, all others go both ways, and
an exception may leave a `try` body before any of its statements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tests.forks.oracle.modules import Module, methods
from tests.forks.oracle.steps import STEPS, evaluated, gate_of, has_step, named_once

METHOD = "compile_or_warm_up_model"
CALL = "warmup_v1_slot_mapping_kernel"
STARTED_CALL = re.compile(r"(engine|server|worker)_?(has_)?started|mark_started|notify_ready", re.I)
STARTED_KEY = re.compile(r"STARTED|READY")


@dataclass(frozen=True)
class State:
    """What has happened on a path; `failed` once a handler has swallowed an exception."""

    calls: int = 0
    watched: str = ""
    entered: bool = False
    failed: bool = False


@dataclass
class Ends:
    """The states in which a block of statements can be left, by the way it is left."""

    on: set[State] = field(default_factory=set)
    returned: set[State] = field(default_factory=set)
    broken: set[State] = field(default_factory=set)
    continued: set[State] = field(default_factory=set)
    # Every state that an exception could have been raised in.
    between: set[State] = field(default_factory=set)

    def take(self, other: Ends) -> None:
        self.returned |= other.returned
        self.broken |= other.broken
        self.continued |= other.continued
        self.between |= other.between


class Walk:
    def __init__(
        self,
        module: Module,
        owner: ast.ClassDef,
        v2: bool,
        monitors: frozenset[str],
        strict: bool,
        flag: str,
    ) -> None:
        self.module = module
        self.methods = methods(owner)
        self.v2 = v2
        self.monitors = monitors
        self.strict = strict
        self.flag = flag
        self.found: list[str] = []
        self.running: list[str] = []
        # Whether some path of this runner makes the call before the monitor.
        self.in_time = False
        self.gate = gate_of(self.methods)

    def run(self) -> list[str]:
        ends = self.method(METHOD, {State()})
        for state in ends:
            late = state.entered or self.gate is None
            if not self.v2 and late and not state.calls and not state.failed:
                self.found.append("a V1 path ends without the call")
            if state.calls > 1:
                self.found.append("a path makes the call twice")
        return self.found

    def method(self, name: str, states: set[State]) -> set[State]:
        self.running.append(name)
        ends = self.block(self.methods[name].body, states)
        self.running.pop()
        return ends.on | ends.returned

    def block(self, body: Iterable[ast.stmt], states: set[State]) -> Ends:
        ends = Ends(on=set(states))
        for statement in body:
            ends.between |= ends.on
            if not ends.on:
                break
            after = self.statement(statement, ends.on)
            if has_step(statement) and not isinstance(statement, ast.Expr):
                after.on = {replace(state, entered=True) for state in after.on}
            ends.on = after.on
            ends.take(after)
        ends.between |= ends.on
        return ends

    def statement(self, node: ast.stmt, states: set[State]) -> Ends:
        if isinstance(node, ast.Return):
            value = [node.value] if node.value else []
            return Ends(returned=self.expressions(value, states))
        if isinstance(node, ast.Raise):
            return Ends(between=self.expressions([node], states))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return Ends(on=states)
        if isinstance(node, ast.Break):
            return Ends(broken=states)
        if isinstance(node, ast.Continue):
            return Ends(continued=states)
        if isinstance(node, ast.If):
            return self.choice(node, states)
        if isinstance(node, (ast.For, ast.While)):
            return self.loop(node, states)
        if isinstance(node, ast.With):
            return self.guarded(node, states)
        if isinstance(node, ast.Try):
            return self.attempt(node, states)
        if isinstance(node, ast.Match):
            return self.match(node, states)
        return Ends(on=self.expressions([node], states))

    def choice(self, node: ast.If, states: set[State]) -> Ends:
        states = self.expressions([node.test], states)
        if node is self.gate:
            states = {replace(state, entered=True) for state in states}
        truth = self.truth(node.test)
        ends = Ends()
        for arm, taken in ((node.body, truth is not False), (node.orelse, truth is not True)):
            if taken:
                one = self.block(arm, states)
                ends.on |= one.on
                ends.take(one)
        return ends

    def loop(self, node: ast.For | ast.While, states: set[State]) -> Ends:
        head: list[ast.AST] = [node.iter] if isinstance(node, ast.For) else [node.test]
        reach = self.expressions(head, states)
        endless = isinstance(node, ast.While) and self.truth(node.test) is True
        ends = Ends(on=set() if endless else reach)
        for _ in range(2):
            once = self.block(node.body, reach)
            ends.returned |= once.returned
            ends.between |= once.between
            reach = once.on | once.continued
            ends.on = ends.on | once.broken | (set() if endless else reach)
        last = self.block(node.orelse, ends.on)
        last.take(Ends(returned=ends.returned, between=ends.between))
        return last

    def guarded(self, node: ast.With, states: set[State]) -> Ends:
        entered = self.expressions([item.context_expr for item in node.items], states)
        ends = self.block(node.body, entered)
        if "suppress" in " ".join(ast.unparse(item.context_expr) for item in node.items):
            ends.on |= {replace(state, failed=True) for state in ends.between}
        return ends

    def attempt(self, node: ast.Try, states: set[State]) -> Ends:
        body = self.block(node.body, states)
        ends = Ends(between=set(body.between))
        ends.take(body)
        rest = self.block(node.orelse, body.on)
        ends.take(rest)
        ends.on = rest.on
        for handler in node.handlers:
            caught = self.block(
                handler.body, {replace(state, failed=True) for state in body.between}
            )
            ends.on |= caught.on
            ends.take(caught)
        if node.finalbody:
            last = self.block(node.finalbody, ends.on)
            returned = self.block(node.finalbody, ends.returned)
            ends.on = last.on
            ends.returned = returned.on | returned.returned | last.returned
            ends.between |= last.between
        return ends

    def match(self, node: ast.Match, states: set[State]) -> Ends:
        ends = Ends(on=self.expressions([node.subject], states))
        for case in node.cases:
            one = self.block(case.body, states)
            ends.on = ends.on | one.on
            ends.take(one)
        return ends

    def truth(self, node: ast.expr) -> bool | None:
        """What a condition is for this runner; None when it can be either."""
        written = ast.unparse(node)
        if written == f"self.{self.flag}" or written.startswith(f"getattr(self, '{self.flag}'"):
            return self.v2
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.Name):
            value = named_once(self.methods[self.running[-1]], node.id)
            return None if value is None else self.truth(value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value) for value in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        return None

    def expressions(self, nodes: Iterable[ast.AST], states: set[State]) -> set[State]:
        for node in nodes:
            for part, sure in evaluated(node, True):
                states = (set() if sure else states) | self.event(part, states)
        return states

    def event(self, node: ast.AST, states: set[State]) -> set[State]:
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(self.announces(target) for target in targets):
                return {self.watch(state, "the engine is started") for state in states}
            return states
        if not isinstance(node, ast.Call):
            return states
        written = ast.unparse(node.func)
        last = written.rsplit(".", 1)[-1]
        if last == CALL:
            return {self.call(state) for state in states}
        if last in STEPS:
            return {self.step(state) for state in states}
        if self.monitors_start(node.func, written):
            return {self.watch(state, "the monitor is active") for state in states}
        if STARTED_CALL.search(last) or (
            written.startswith("os.") and STARTED_KEY.search(ast.unparse(node))
        ):
            return {self.watch(state, "the engine is started") for state in states}
        if written == f"self.{last}" and last in self.methods and last not in self.running:
            return self.method(last, states)
        return states

    def call(self, state: State) -> State:
        if self.v2:
            self.found.append("a V2 path makes the call")
        elif state.watched:
            self.found.append(f"the call comes when {state.watched}")
        else:
            self.in_time = True
        return replace(state, calls=min(state.calls + 1, 2))

    def step(self, state: State) -> State:
        if self.strict and state.calls and not self.v2:
            self.found.append("the call comes before the sampler's dummy run")
        return state

    def watch(self, state: State, why: str) -> State:
        if not self.v2 and not state.calls:
            self.found.append(f"{why} on a V1 path before the call")
        return replace(state, watched=state.watched or why)

    def announces(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Subscript) and bool(
            ast.unparse(target.value).endswith("environ")
            and STARTED_KEY.search(ast.unparse(target.slice))
        )

    def monitors_start(self, function: ast.expr, written: str) -> bool:
        if written in self.monitors:
            return True
        root, _, rest = written.partition(".")
        if root == "self":
            return "activate_jit_monitor" in rest and rest not in self.methods
        origin = self.module.every_import.get(root)
        if origin is None or "jit_monitor" not in origin.dotted:
            return False
        return "activate" in (rest or origin.dotted)
