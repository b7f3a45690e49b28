"""Whether the worker's call of a warm-up reaches it, on every path on which an engine starts.

At run time the name must be bound to a function that takes the argument of the call: the worker's
own V1 runner. Every V1 path that reaches the V1/V2 branch must make the call in the branch or after
it, before the JIT monitor is activated or the engine is declared started. Calls are followed into
the worker's own methods and the module's own functions. A path on which the platform has no device
needs no call: it compiles no kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from codemods.engine.bound import Bound, Unbound, bound, bound_by_import, imports
from codemods.engine.sources import SourceFile, Sources
from codemods.recipes.warm_up.control_flow import Flow, FlowPath, Paths, mentions_flag_directly
from codemods.transforms.names import Imported

METHODS = ("compile_or_warm_up_model", "_compile_or_warm_up_model")
# What the two arms of the branch call to warm their runner up, in every release from 0.19.0.
RUNNER_WARMUPS = frozenset({"warmup_kernels", "_dummy_sampler_run", "_dummy_pooler_run"})


@dataclass(frozen=True)
class Target:
    """The warm-up that is looked for, and the expression of the runner that it must be given.

    Without `sources`, a call is known by its name alone and its arguments are not looked at.
    """

    function: str
    runner: str = "self.model_runner"
    v1_only: bool = True
    sources: Sources | None = None


@dataclass(frozen=True)
class Problem:
    """Why a call does not do; `unimported` where only the import is missing."""

    why: str
    line: int
    unimported: bool = False


@dataclass(frozen=True)
class CallSite:
    """A call that names the warm-up, the method it is in, and what it reaches."""

    line: int
    method: str
    reached: Bound | None = None
    takes_worker: bool = False


@dataclass
class Calls:
    """The worker's calls of the warm-up, and everything that is wrong with them.

    `early_returns` are lines that return on a path that has not reached the V1/V2 branch.
    """

    sites: list[CallSite] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    has_monitor: bool = False
    early_returns: list[int] = field(default_factory=list)
    figures: dict[str, set[int]] = field(default_factory=dict)

    @property
    def reached(self) -> CallSite | None:
        """The first call that reaches a warm-up."""
        return next((site for site in self.sites if site.reached is not None), None)


def find_calls(file: SourceFile, target: Target) -> Calls | None:
    """The calls of the worker's warm-up method; None where it has no such method."""
    tree = file.tree
    found = _entry(tree) if tree is not None else None
    if tree is None or found is None:
        return None
    walk = _Walk(file, tree, found[0], target)
    walk.run(found[1])
    return walk.calls


def _entry(tree: ast.Module) -> tuple[ast.ClassDef, ast.FunctionDef] | None:
    """The method that an engine calls: `Worker`'s before another class's."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for owner in sorted(classes, key=lambda node: node.name != "Worker"):
        methods = {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
        for name in METHODS:
            if name in methods:
                return owner, methods[name]
    return None


@dataclass(frozen=True)
class _Scope:
    """A function that is followed, and what its names mean: a dotted name, or an import."""

    node: ast.FunctionDef
    names: Mapping[str, str | Imported | None]


Answer = TypeVar("Answer")


class _Walk:
    def __init__(
        self, file: SourceFile, tree: ast.Module, owner: ast.ClassDef, target: Target
    ) -> None:
        self.file = file
        self.target = target
        self.calls = Calls()
        self._methods = _functions(owner.body)
        self._functions = _functions(tree.body)
        self._module_names = _scope_names(tree.body, ())
        self._scopes: list[_Scope] = []
        self._relevant: dict[str, bool] = {}
        self._has_flag = any(
            isinstance(node, ast.expr) and mentions_flag_directly(node) for node in ast.walk(tree)
        )
        self._has_branch = False
        self._heads: set[str] = set()
        self._complaints: list[Problem] = []

    def run(self, entry: ast.FunctionDef) -> None:
        reached = [*self._reachable(entry)]
        self.calls.has_monitor = any(
            self._in(one, call, self._is_monitor) for one in reached for call in _calls(one)
        )
        self._has_branch = any(
            _called(call) in RUNNER_WARMUPS for one in reached for call in _calls(one)
        )
        self._heads = {
            (self._in(one, call, lambda call: self._canonical(call.func)) or "").partition(".")[0]
            for one in reached
            for call in _calls(one)
            if self._in(one, call, self._names_the_warmup)
        }
        flow = self._flow(entry)
        self._scopes.append(self._scope(entry, ()))
        flow.method(entry.body, entry.end_lineno or entry.lineno)
        self.calls.problems += dict.fromkeys(self._complaints)

    def _in(
        self, function: ast.FunctionDef, call: ast.Call, ask: Callable[[ast.Call], Answer]
    ) -> Answer:
        """What `ask` says of a call of that function."""
        self._scopes.append(self._scope(function, ()))
        try:
            return ask(call)
        finally:
            self._scopes.pop()

    def _flow(self, function: ast.FunctionDef) -> Flow:
        return Flow(
            self._on_call,
            self._on_return,
            _is_branch,
            frozenset(_names_holding(function, mentions_flag_directly)),
            frozenset(_names_holding(function, _negates_flag)),
            on_statement=self._on_statement,
        )

    def _reachable(self, entry: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
        """The functions of the file that the method calls, itself first."""
        seen: list[ast.FunctionDef] = []
        pending = [entry]
        while pending:
            one = pending.pop(0)
            if one in seen:
                continue
            seen.append(one)
            pending += [helper for call in _calls(one) if (helper := self._helper(call))]
        return iter(seen)

    def _helper(self, call: ast.Call) -> ast.FunctionDef | None:
        """The worker's own method, or the module's own function, that a call goes to."""
        if isinstance(call.func, ast.Name):
            return self._functions.get(call.func.id)
        path = _dotted(call.func)
        if path.startswith("self.") and path.count(".") == 1:
            return self._methods.get(path.removeprefix("self."))
        return None

    def _scope(self, node: ast.FunctionDef, given: Iterable[tuple[str, str | None]]) -> _Scope:
        names = _scope_names(node.body, [argument.arg for argument in node.args.args])
        return _Scope(node, {**names, "self": "self", **dict(given)})

    def _on_call(self, call: ast.Call, paths: Paths) -> Paths:
        if self._names_the_warmup(call):
            return self._warm(call, paths)
        helper = self._helper(call)
        if helper is not None and self._matters(helper):
            entered = any(helper is scope.node for scope in self._scopes)
            return paths if entered else self._inline(helper, call, paths)
        if self._is_monitor(call):
            return self._watch(call.lineno, "activates the monitor", paths)
        return paths

    def _matters(self, helper: ast.FunctionDef) -> bool:
        """Whether a helper does any of what the paths are followed for."""
        if helper.name not in self._relevant:
            self._relevant[helper.name] = False
            self._relevant[helper.name] = any(
                _called(call) in RUNNER_WARMUPS
                or self._in(one, call, self._names_the_warmup)
                or self._in(one, call, self._is_monitor)
                for one in self._reachable(helper)
                for call in _calls(one)
            ) or any(map(declares_start, ast.walk(helper)))
        return self._relevant[helper.name]

    def _inline(self, helper: ast.FunctionDef, call: ast.Call, paths: Paths) -> Paths:
        parameters = [argument.arg for argument in helper.args.args]
        if isinstance(call.func, ast.Attribute):
            parameters = parameters[1:]
        given = dict(zip(parameters, map(self._canonical, call.args), strict=False))
        given |= {word.arg: self._canonical(word.value) for word in call.keywords if word.arg}
        scope = self._scope(helper, given.items())
        flow = self._flow(helper)
        self._scopes.append(scope)
        try:
            return flow.inlined(helper.body, paths)
        finally:
            self._scopes.pop()

    def _names_the_warmup(self, call: ast.Call) -> bool:
        if _called(call) == self.target.function:
            return True
        path = self._canonical(call.func)
        origin = self._origin(path) if path else ""
        return origin.rpartition(".")[2] == self.target.function

    def _canonical(self, node: ast.expr) -> str | None:
        """A dotted name with local aliases and parameters put in; None for anything else."""
        path = _dotted(node)
        head, dot, rest = path.partition(".")
        known = self._scopes[-1].names.get(head, head) if self._scopes else head
        if not path or known is None:
            return None
        return path if isinstance(known, Imported) else f"{known}{dot}{rest}"

    def _imported(self, head: str) -> Imported | None:
        local = self._scopes[-1].names.get(head) if self._scopes else None
        found = local if local is not None else self._module_names.get(head)
        return found if isinstance(found, Imported) else None

    def _origin(self, path: str) -> str:
        """A dotted name through the imports, and the module's plain aliases of them."""
        for _ in range(8):
            head, dot, rest = path.partition(".")
            found = self._imported(head)
            if found is not None:
                module, name = found.origin(rest)
                return f"{module}.{name}"
            alias = self._module_names.get(head)
            if not isinstance(alias, str) or alias == head:
                return path
            path = f"{alias}{dot}{rest}"
        return path

    def _is_monitor(self, call: ast.Call) -> bool:
        path = self._canonical(call.func) or _dotted(call.func)
        words = self._origin(path).lower().replace(".", "_").split("_")
        if "deactivate" in words or "is" in words[-2:-1] or self._helper(call) is not None:
            return False
        return "monitor" in words and bool({"jit", "triton", "compile", "compilation"} & {*words})

    def _watch(self, line: int, does: str, paths: Paths) -> Paths:
        self._count("monitor_calls", line)
        if any(map(self._lacks_warmup, paths)):
            self._complain(
                f"line {line} {does} on a path without the warm-up behind the V1/V2 branch", line
            )
        return frozenset(replace(path, watched=True) for path in paths)

    def _on_statement(self, node: ast.stmt, paths: Paths) -> Paths:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            ours = {self._local(one.local) for one in imports(node) if one.local in self._heads}
            return frozenset(replace(path, imported=path.imported | ours) for path in paths)
        if declares_start(node):
            return frozenset(replace(path, started=True) for path in paths)
        return paths

    def _local(self, name: str) -> str:
        return f"{self._scopes[-1].node.name}.{name}"

    def _warm(self, call: ast.Call, paths: Paths) -> Paths:
        self._count("warmup_calls", call.lineno)
        method = self._scopes[-1].node.name
        reached = self._reached(call, paths)
        site = CallSite(call.lineno, method)
        if isinstance(reached, Bound):
            site = replace(site, reached=reached, takes_worker=self._check_arguments(call, reached))
        if site not in self.calls.sites:
            self.calls.sites.append(site)
        line = call.lineno
        if any(path.watched for path in paths):
            self._complain(f"line {line} warms up after the monitor is active", line)
        elif any(path.started for path in paths):
            self._complain(f"line {line} warms up after the engine is declared started", line)
        if self.target.v1_only and self._has_flag and any(path.v2 is not False for path in paths):
            alone = all(path.v2 for path in paths)
            which = "alone" if alone else "too"
            self._complain(
                f"line {line} warms the V1 runner's kernel up for the V2 runner {which}", line
            )
        # A call before the branch that does not know the runner proves nothing.
        return frozenset(
            replace(
                path,
                warmed=path.warmed
                or path.branched
                or not self._has_branch
                or path.v2 is False
                or not self.target.v1_only,
            )
            for path in paths
        )

    def _reached(self, call: ast.Call, paths: Paths) -> Bound | None:
        """The function that a call goes to; what keeps it from one becomes a problem."""
        sources = self.target.sources
        if sources is None:
            return None
        written = _dotted(call.func)
        path = self._canonical(call.func)
        head = (path or written).partition(".")[0]
        if path is None:
            why = f"{written.partition('.')[0]} is bound again in {self._scopes[-1].node.name}"
            self._complain(f"line {call.lineno} calls {written}, and {why}", call.lineno)
            return None
        local = self._scopes[-1].names.get(head)
        rest = path.partition(".")[2]
        if isinstance(local, Imported):
            if any(self._local(head) not in path.imported for path in paths):
                self._complain(
                    f"line {call.lineno} calls {written} on a path that has not imported it",
                    call.lineno,
                )
            found = bound_by_import(sources, self.file, local, rest, call.lineno)
        else:
            found = bound(sources, self.file, path)
        if isinstance(found, Bound) and isinstance(found.node, ast.FunctionDef):
            return found
        why = found.why if isinstance(found, Unbound) else f"{written} is no function"
        nowhere = isinstance(found, Unbound) and found.nowhere and written == self.target.function
        self.calls.problems.append(
            Problem(f"line {call.lineno} calls {written}: {why}", call.lineno, nowhere)
        )
        return None

    def _check_arguments(self, call: ast.Call, reached: Bound) -> bool:
        """Whether the function takes the worker; arguments that it does not take are a problem."""
        assert isinstance(reached.node, ast.FunctionDef)
        arguments = reached.node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        given = dict(zip(names, call.args, strict=False))
        given |= {word.arg: word.value for word in call.keywords if word.arg}
        required = names[: len(names) - len(arguments.defaults)]
        required += [
            one.arg
            for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is None
        ]
        unknown = given.keys() - {*names, *(one.arg for one in arguments.kwonlyargs)}
        spread = any(isinstance(one, ast.Starred) for one in call.args)
        too_many = len(call.args) > len(names)
        if spread or too_many or unknown or set(required) - given.keys():
            self._complain(
                f"line {call.lineno} calls {ast.unparse(call)}, and the function takes "
                f"({ast.unparse(arguments)})",
                call.lineno,
            )
            return False
        passed = {name: self._canonical(value) for name, value in given.items()}
        taken = next((name for name, path in passed.items() if path == self.target.runner), None)
        if taken is not None and taken == names[0]:
            return False
        if names and passed.get(names[0]) == "self":
            return True
        self._complain(
            f"line {call.lineno} calls {ast.unparse(call)}, and the worker's runner is "
            f"{self.target.runner}",
            call.lineno,
        )
        return False

    def _on_return(self, line: int, paths: Paths) -> None:
        self._count("returns", line)
        early = [path for path in paths if not path.branched and self._has_branch]
        if any(map(self._lacks_warmup, early)):
            self.calls.early_returns.append(line)
        behind = [path for path in paths if path.branched or not self._has_branch]
        if any(self._lacks_warmup(path) and not path.watched for path in behind):
            self._complain(f"line {line} returns on a path without the warm-up", line)

    def _lacks_warmup(self, path: FlowPath) -> bool:
        let_off = path.excused or (self.target.v1_only and path.v2 is True)
        return not path.warmed and not let_off

    def _complain(self, why: str, line: int) -> None:
        self._complaints.append(Problem(why, line))

    def _count(self, what: str, line: int) -> None:
        self.calls.figures.setdefault(what, set()).add(line)


def _is_branch(node: ast.stmt) -> bool:
    return any(_called(call) in RUNNER_WARMUPS for call in _calls(node))


def _names_holding(function: ast.FunctionDef, asked: Callable[[ast.expr], bool]) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and asked(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _negates_flag(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.Not)
        and mentions_flag_directly(node.operand)
    )


def declares_start(node: ast.AST) -> bool:
    """Whether a statement sets or calls something that is named for the engine having started."""
    if isinstance(node, ast.Assign):
        parts: list[ast.expr] = node.targets
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        parts = [node.value.func]
    else:
        return False
    return any(
        "started" in _text(inner).lower().split("_") for part in parts for inner in ast.walk(part)
    )


def _text(node: ast.AST) -> str:
    """What a name, an attribute or a string says."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _functions(body: Sequence[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def _scope_names(
    body: Sequence[ast.stmt], parameters: Iterable[str]
) -> dict[str, str | Imported | None]:
    """What a scope's names mean where one statement binds them; None for anything else."""
    found: dict[str, str | Imported | None] = dict.fromkeys(parameters)
    for node in _statements(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in imports(node):
                same = one.local not in found or found[one.local] == one
                found[one.local] = one if same else None
            continue
        targets = _targets(node)
        for target in targets:
            value = _dotted(node.value) if isinstance(node, ast.Assign) else ""
            for name in _stored(target):
                alone = isinstance(target, ast.Name) and name not in found
                found[name] = value if alone and value else None
    return found


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
        return [node.target]
    if isinstance(node, ast.With):
        return [item.optional_vars for item in node.items if item.optional_vars is not None]
    return []


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, those of its `if`s, loops and the like too."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from _statements(handler.body)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (child for child in ast.walk(node) if isinstance(child, ast.Call))


def _called(call: ast.Call) -> str:
    path = call.func
    return path.attr if isinstance(path, ast.Attribute) else getattr(path, "id", "")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""
