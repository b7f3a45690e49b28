"""Proof 3: the warm-up comes after the V1/V2 branch and before the monitor, on every path.

Over the control flow of the rewritten `Worker.compile_or_warm_up_model`, not by line numbers. A
fork's call in the V1 arm itself counts as after the branch, where every V1 path takes it. The
monitor is known by what it is: something imported from a module called `jit_monitor`, or a method
of the worker that calls such a thing. A tree that has no monitor must warm up before every return
that lies behind the branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from codemods.engine.checkout import WORKER
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.subject import Subject
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.flow import Flow, Path, Paths, mentions_flag_directly

NAME = "order"
METHODS = ("_compile_or_warm_up_model", "compile_or_warm_up_model")
# What the two arms of the branch call to warm their runner up, in every release from 0.19.0.
RUNNER_WARMUPS = frozenset({"warmup_kernels", "_dummy_sampler_run", "_dummy_pooler_run"})
MONITOR_METHOD = "_maybe_activate_jit_monitor"


def prove(subject: Subject, _: Options, *, function: str, v1_only: bool = True) -> Proof:
    """The proof for the warm-up `function`, which is for both runners where not `v1_only`."""
    if not subject.in_force(edit_names.WORKER):
        found = subject.edit(edit_names.WORKER)
        return skipped(NAME, found.detail if found else "the worker edit was left out")
    side = subject.after
    tree = side.parse(WORKER)
    if tree is None:
        return skipped(NAME, f"{side.name(WORKER)} does not parse with this Python")
    return prove_module(tree, function, v1_only=v1_only)


def prove_module(tree: ast.Module, function: str, *, v1_only: bool = True) -> Proof:
    """The proof on a worker module's syntax tree."""
    found = _method(tree)
    if found is None:
        return failed(NAME, f"no method {METHODS[1]} in the worker")
    owner, method = found
    watch = _Watch.over(tree, owner, method, function, v1_only)
    if not any(watch.is_warmup(call) for call in _calls(method)):
        return failed(NAME, f"{owner.name}.{method.name} never calls {function}")
    watch.follow()
    if watch.complaints:
        return failed(NAME, "; ".join(dict.fromkeys(watch.complaints)), **watch.figures)
    end = "the monitor" if watch.has_monitor else "every return (the tree has no monitor)"
    return passed(
        NAME,
        f"the warm-up comes after the V1/V2 branch and before {end}, on every path",
        **watch.figures,
    )


@dataclass
class _Watch:
    """Judges the calls of one method as its paths reach them."""

    function: str
    v1_only: bool
    method: ast.FunctionDef
    names: dict[str, str]
    monitor_methods: frozenset[str]
    has_monitor: bool = False
    has_branch: bool = False
    has_flag: bool = False
    complaints: list[str] = field(default_factory=list)
    lines: dict[str, set[int]] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, int | float | str]:
        return {what: len(lines) for what, lines in self.lines.items()}

    @staticmethod
    def over(
        tree: ast.Module, owner: ast.ClassDef, method: ast.FunctionDef, function: str, v1_only: bool
    ) -> _Watch:
        names = _imported(tree.body) | _imported(ast.walk(method))
        watch = _Watch(function, v1_only, method, names, frozenset({MONITOR_METHOD}))
        watch.monitor_methods |= {
            other.name
            for other in owner.body
            if isinstance(other, ast.FunctionDef) and other is not method and watch.monitors(other)
        }
        watch.has_monitor = any(watch.is_monitor(call) for call in _calls(method))
        watch.has_branch = any(_called(call) in RUNNER_WARMUPS for call in _calls(method))
        watch.has_flag = any(
            isinstance(node, ast.expr) and mentions_flag_directly(node) for node in ast.walk(tree)
        )
        return watch

    def follow(self) -> None:
        aliases = {
            target.id
            for node in ast.walk(self.method)
            if isinstance(node, ast.Assign) and mentions_flag_directly(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        flow = Flow(self.on_call, self.on_return, self.is_branch, frozenset(aliases))
        flow.method(self.method.body, self.method.end_lineno or self.method.lineno)

    def is_warmup(self, call: ast.Call) -> bool:
        return self._meaning(call).rpartition(".")[2] == self.function

    def is_monitor(self, call: ast.Call) -> bool:
        if (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "self"
        ):
            return call.func.attr in self.monitor_methods
        module = self._meaning(call).rpartition(".")[0]
        return module.rpartition(".")[2] == "jit_monitor"

    def monitors(self, other: ast.FunctionDef) -> bool:
        """Whether another method of the worker activates the monitor."""
        inside = replace(self, names=self.names | _imported(ast.walk(other)))
        return any(inside.is_monitor(call) for call in _calls(other))

    def is_branch(self, node: ast.stmt) -> bool:
        return any(_called(call) in RUNNER_WARMUPS for call in _calls(node))

    def on_call(self, call: ast.Call, paths: Paths) -> Paths:
        if self.is_warmup(call):
            return self._warm(call, paths)
        if self.is_monitor(call):
            self._count("monitor_calls", call.lineno)
            if any(map(self._lacks_warmup, paths)):
                self._complain(
                    f"line {call.lineno} activates the monitor on a path without the warm-up "
                    "behind the V1/V2 branch"
                )
            return frozenset(replace(path, watched=True) for path in paths)
        return paths

    def _warm(self, call: ast.Call, paths: Paths) -> Paths:
        self._count("warmup_calls", call.lineno)
        if any(path.watched for path in paths):
            self._complain(f"line {call.lineno} warms up after the monitor is active")
        if self.v1_only and self.has_flag and any(path.v2 is not False for path in paths):
            self._complain(
                f"line {call.lineno} warms the V1 runner's kernel up for the V2 runner too"
            )
        # A call before the branch, which cannot know the runner, does no harm and proves nothing.
        return frozenset(
            replace(path, warmed=path.warmed or path.branched or not self.has_branch)
            for path in paths
        )

    def on_return(self, line: int, paths: Paths) -> None:
        self._count("returns", line)
        if self.has_monitor:
            return
        behind = [path for path in paths if path.branched or not self.has_branch]
        if any(map(self._lacks_warmup, behind)):
            self._complain(f"line {line} returns on a path without the warm-up")

    def _lacks_warmup(self, path: Path) -> bool:
        return not path.warmed and not (self.v1_only and path.v2 is True)

    def _meaning(self, call: ast.Call) -> str:
        """The dotted name a call goes to, through imports and local aliases."""
        dotted = _dotted(call.func)
        head, dot, rest = dotted.partition(".")
        return f"{self.names.get(head, head)}{dot}{rest}"

    def _complain(self, complaint: str) -> None:
        self.complaints.append(complaint)

    def _count(self, what: str, line: int) -> None:
        self.lines.setdefault(what, set()).add(line)


def _method(tree: ast.Module) -> tuple[ast.ClassDef, ast.FunctionDef] | None:
    """The warm-up method: `Worker`'s before another class's, the inner one before the outer."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for owner in sorted(classes, key=lambda node: node.name != "Worker"):
        methods = {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
        for name in METHODS:
            if name in methods:
                return owner, methods[name]
    return None


def _imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Local names of imports, and of plain aliases of them, with what they stand for."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                names[alias.asname or alias.name] = f"{module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    names[alias.asname] = alias.name
        elif isinstance(node, ast.Assign) and _dotted(node.value):
            head, dot, rest = _dotted(node.value).partition(".")
            for target in node.targets:
                if isinstance(target, ast.Name) and head in names:
                    names[target.id] = f"{names[head]}{dot}{rest}"
    return names


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (child for child in ast.walk(node) if isinstance(child, ast.Call))


def _called(call: ast.Call) -> str:
    return _dotted(call.func).rpartition(".")[2]


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else node.attr
    return ""
