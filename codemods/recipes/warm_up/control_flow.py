"""Runs a method's control flow over abstract paths, without running the method.

A path records what the run has done so far: see `FlowPath`. A statement maps the set of paths that
reach it to the set of paths that leave it. `if`, loops, `try`, `with`, `match`, `return`, `raise`,
`break` and `continue` are followed, and a condition on the V2 flag splits paths by its value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class FlowPath:
    """One way through the method so far.

    `v2` is what the path has found the V2 flag to be, None while it has not looked. `branched`,
    `warmed` and `watched`: it has reached the V1/V2 branch, warmed up, activated the monitor.
    `started`: the engine was declared started. `excused`: the platform was found to have no device
    that a kernel is compiled for. `imported` are names that statements of functions have imported.
    """

    v2: bool | None = None
    branched: bool = False
    warmed: bool = False
    watched: bool = False
    started: bool = False
    excused: bool = False
    imported: frozenset[str] = frozenset()


Paths = frozenset[FlowPath]
NONE: Paths = frozenset()
FLAGS = frozenset({"use_v2_model_runner", "VLLM_USE_V2_MODEL_RUNNER"})


@dataclass
class Flow:
    """Follows statements.

    `on_call` sees each call with the paths that make it, and `on_return` each end. `aliases` are
    local names that hold the V2 flag, `negations` those that hold its opposite; `is_branch` says
    which `if` is the V1/V2 one.
    """

    on_call: Callable[[ast.Call, Paths], Paths]
    on_return: Callable[[int, Paths], object]
    is_branch: Callable[[ast.stmt], bool]
    aliases: frozenset[str] = frozenset()
    negations: frozenset[str] = frozenset()
    on_statement: Callable[[ast.stmt, Paths], Paths] = lambda _, paths: paths
    _returns: list[list[tuple[int, Paths]]] = field(default_factory=list)
    _raised: list[Paths] = field(default_factory=list)
    _breaks: list[Paths] = field(default_factory=list)
    _continues: list[Paths] = field(default_factory=list)

    def method(self, body: Sequence[ast.stmt], last_line: int) -> None:
        """Follow a whole method; running off its end is a return."""
        left = self.block(body, frozenset({FlowPath()}))
        if left:
            self.on_return(last_line, left)

    def inlined(self, body: Sequence[ast.stmt], paths: Paths) -> Paths:
        """Follow the body of a function that is called; the paths that come back from it."""
        came_back: list[Paths] = []
        inner = replace(
            self,
            on_return=lambda _, ended: came_back.append(ended),
            _returns=[],
            _raised=[],
            _breaks=[],
            _continues=[],
        )
        return inner.block(body, paths).union(*came_back)

    def block(self, body: Iterable[ast.stmt], paths: Paths) -> Paths:
        for statement in body:
            if not paths:
                return NONE
            self._may_raise(paths)
            paths = self.on_statement(statement, self._statement(statement, paths))
            self._may_raise(paths)
        return paths

    def _statement(self, node: ast.stmt, paths: Paths) -> Paths:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return paths
            case ast.If():
                return self._if(node, paths)
            case ast.While():
                return self._loop(node, self._evaluate(node.test, paths))
            case ast.For() | ast.AsyncFor():
                return self._loop(node, self._evaluate(node.iter, paths))
            case ast.With() | ast.AsyncWith():
                return self._with(node, paths)
            case ast.Try():
                return self._try(node, paths)
            case ast.Match():
                return self._match(node, paths)
            case ast.Return():
                return self._return(node, paths)
            case ast.Assert():  # python -O leaves it out
                return paths | self._children(node, paths)
            case ast.Raise():
                self._may_raise(self._children(node, paths))
                return NONE
            case ast.Break():
                self._breaks[-1] |= paths
                return NONE
            case ast.Continue():
                self._continues[-1] |= paths
                return NONE
        if type(node).__name__ == "TryStar":
            return self._try(node, paths)  # type: ignore[arg-type]
        return self._children(node, paths)

    def _if(self, node: ast.If, paths: Paths) -> Paths:
        paths = self._evaluate(node.test, paths)
        if self.is_branch(node):
            paths = frozenset(replace(path, branched=True) for path in paths)
        left = self.block(node.body, self._refine(node.test, paths, True))
        return left | self.block(node.orelse, self._refine(node.test, paths, False))

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, paths: Paths) -> Paths:
        self._breaks.append(NONE)
        self._continues.append(NONE)
        seen = paths
        while True:
            again = seen | self.block(node.body, seen) | self._continues[-1]
            if again == seen:
                break
            seen = again
        broken = self._breaks.pop()
        self._continues.pop()
        forever = isinstance(node, ast.While) and _constant(node.test) is True
        return broken | (NONE if forever else self.block(node.orelse, seen))

    def _with(self, node: ast.With | ast.AsyncWith, paths: Paths) -> Paths:
        for item in node.items:
            paths = self._evaluate(item.context_expr, paths)
        if not any("suppress" in ast.unparse(item.context_expr) for item in node.items):
            return self.block(node.body, paths)
        left, raised = self._guarded(node.body, paths)
        return left | raised

    def _try(self, node: ast.Try, paths: Paths) -> Paths:
        self._returns.append([])
        left, raised = self._guarded(node.body, paths)
        self._may_raise(raised)
        left = self.block(node.orelse, left)
        for handler in node.handlers:
            left |= self.block(handler.body, raised)
        for line, ended in self._returns.pop():
            self._end(line, self.block(node.finalbody, ended))
        if node.finalbody and raised:
            # An exception that no handler takes still runs the last block, and ends the path.
            self.block(node.finalbody, raised)
        return self.block(node.finalbody, left)

    def _guarded(self, body: Sequence[ast.stmt], paths: Paths) -> tuple[Paths, Paths]:
        """Paths that get through, and those an exception may leave with, from any point."""
        self._raised.append(NONE)
        left = self.block(body, paths)
        return left, self._raised.pop()

    def _match(self, node: ast.Match, paths: Paths) -> Paths:
        paths = self._evaluate(node.subject, paths)
        left = paths
        for case in node.cases:
            left |= self.block(case.body, paths)
        return left

    def _return(self, node: ast.Return, paths: Paths) -> Paths:
        if node.value is not None:
            paths = self._evaluate(node.value, paths)
        self._end(node.lineno, paths)
        return NONE

    def _end(self, line: int, paths: Paths) -> None:
        if self._returns:
            self._returns[-1].append((line, paths))
        elif paths:
            self.on_return(line, paths)

    def _may_raise(self, paths: Paths) -> None:
        if self._raised:
            self._raised[-1] |= paths

    def _evaluate(self, node: ast.expr, paths: Paths) -> Paths:
        """The paths after an expression; its calls are seen in the order they are made."""
        match node:
            case ast.Lambda():
                return paths
            case ast.BoolOp():
                going, left = paths, NONE
                stops = isinstance(node.op, ast.Or)
                for value in node.values:
                    going = self._evaluate(value, going)
                    left |= self._refine(value, going, stops)
                    going = self._refine(value, going, not stops)
                return left | going
            case ast.IfExp():
                paths = self._evaluate(node.test, paths)
                return self._evaluate(
                    node.body, self._refine(node.test, paths, True)
                ) | self._evaluate(node.orelse, self._refine(node.test, paths, False))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return paths | self._children(node, paths)
            case ast.Call():
                paths = self._children(node, paths)
                return self.on_call(node, paths) if paths else paths
        return self._children(node, paths)

    def _children(self, node: ast.AST, paths: Paths) -> Paths:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                paths = self._evaluate(child, paths)
            elif isinstance(child, ast.keyword | ast.comprehension):
                paths = self._children(child, paths)
        return paths

    def _refine(self, test: ast.expr, paths: Paths, truth: bool) -> Paths:
        """The paths on which `test` can have come out as `truth`."""
        if (constant := _constant(test)) is not None:
            return paths if constant is truth else NONE
        if isinstance(test, ast.Name) and test.id in self.negations:
            truth = not truth
        if self._is_flag(test):
            return frozenset(
                replace(path, v2=truth) for path in paths if path.v2 is not (not truth)
            )
        if has_device(test) is (not truth):
            return frozenset(replace(path, excused=True) for path in paths)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._refine(test.operand, paths, not truth)
        if isinstance(test, ast.BoolOp):
            all_hold = isinstance(test.op, ast.And) is truth
            if all_hold:
                for value in test.values:
                    paths = self._refine(value, paths, truth)
                return paths
            left = NONE
            for value in test.values:
                left |= self._refine(value, paths, truth)
                paths = self._refine(value, paths, not truth)
            return left
        return paths

    def _is_flag(self, node: ast.expr) -> bool:
        return (
            mentions_flag_directly(node)
            or says_v2(node)
            or (isinstance(node, ast.Name) and node.id in self.aliases | self.negations)
        )


_NEGATIONS = frozenset({"disable", "disabled", "no", "non", "not", "skip", "without"})


def says_v2(node: ast.expr) -> bool:
    """Whether a name or an attribute is one that is true for V2, whatever a fork calls it."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    words = set(name.lower().split("_"))
    return "v2" in words and not words & _NEGATIONS


def mentions_flag_directly(node: ast.expr) -> bool:
    """`self.use_v2_model_runner`, the environment's name for it, or `getattr` of either."""
    if isinstance(node, ast.Attribute):
        return node.attr in FLAGS
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) >= 2
        and _constant(node.args[1]) in FLAGS
    )


def has_device(test: ast.expr) -> bool | None:
    """What a question about the platform is answered where Triton has a device; None for others."""
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and not test.args:
        if test.func.attr == "is_cpu":
            return False
        asked = ast.unparse(test.func)
        alike = asked.endswith(("torch.cuda.is_available", "current_platform.is_cuda_alike"))
        return True if alike else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        value = _constant(test.comparators[0])
        if not ast.unparse(test.left).endswith("device.type") or value not in ("cpu", "cuda"):
            return None
        same = isinstance(test.ops[0], ast.Eq)
        if same or isinstance(test.ops[0], ast.NotEq):
            return (value == "cuda") is same
    if isinstance(test, ast.Name) and test.id == "HAS_TRITON":
        return True
    return None


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
