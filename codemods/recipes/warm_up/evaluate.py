"""Follows a method over what is known of its arguments, without running any code of the tree.

A condition that is not known has two outcomes. A setting's outcome is the same wherever it is asked
for; one that varies is tried both ways. So one `Follower` takes one way through the code, and
`ways` starts one for each.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from codemods.engine.sources import SourceFile
from codemods.recipes.warm_up import tensors
from codemods.recipes.warm_up.values import (
    Arguments,
    DottedName,
    Function,
    Instance,
    Items,
    Known,
    Setting,
    Tensor,
    Value,
    Varying,
    arithmetic,
    comparison,
    unknown,
)
from codemods.transforms.names import Imported

MOST_STEPS = 20_000
MOST_WAYS = 512
DEEPEST = 25
MOST_TURNS = 64
LONGEST_TEXT = 10_000


class TooComplex(Exception):
    """The code branches, loops or calls more than is followed."""


class Raised(Exception):
    """The followed code raises."""


class NoAttribute(Raised):
    """The followed code asks for an attribute that is not there."""


class _UnknownSetting(Exception):
    def __init__(self, setting: str) -> None:
        self.setting = setting


class _Returned(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class _Broken(Exception):
    pass


class _Continued(Exception):
    pass


class Environment(Protocol):
    """What the followed code finds around it; None leaves an answer to the follower."""

    def attribute(self, base: Value, name: str) -> Value | None:
        """`base.name`; an item of `base` where `name` is "[]", or "[0]" for a number."""

    def called(self, base: Value, name: str, given: Arguments) -> Value | None: ...

    def function(self, path: DottedName) -> Function | None: ...

    def launched(
        self, kernel: Value, grid: Value, call: ast.Call, given: Arguments, way: Way
    ) -> None: ...

    def stored(self, base: Value, name: str, value: Value) -> None:
        """`base.name = value`, or an item of `base` is set where `name` is ""."""


@dataclass(eq=False)
class Way:
    """Which outcomes one way through the code takes."""

    settings: Mapping[str, bool]
    planned: Sequence[bool] = ()
    taken: list[tuple[str, bool]] = field(default_factory=list)
    asked: dict[str, bool] = field(default_factory=dict)

    def decide(self, value: Value, asked: str) -> bool:
        """Whether an unknown value is true; `asked` is how the code asks."""
        if isinstance(value, (Varying, Tensor)):
            place = len(self.taken)
            outcome = self.planned[place] if place < len(self.planned) else True
            self.taken.append((asked, outcome))
            return outcome
        if value.text not in self.settings:
            raise _UnknownSetting(value.text)
        self.asked[asked] = self.settings[value.text]
        return self.settings[value.text]


Result = TypeVar("Result")


def ways(follow: Callable[[Way], Result], settings: Mapping[str, bool]) -> Iterator[Result]:
    """Follow the code once for each outcome of what varies, with these outcomes of settings."""
    planned: tuple[bool, ...] | None = ()
    count = 0
    while planned is not None:
        count += 1
        if count > MOST_WAYS:
            raise TooComplex(f"more than {MOST_WAYS} ways lead through it")
        way = Way(settings, planned)
        yield follow(way)
        outcomes = [outcome for _, outcome in way.taken]
        while outcomes and not outcomes[-1]:
            outcomes.pop()
        planned = (*outcomes[:-1], False) if outcomes else None


def for_each_setting(follow: Callable[[Mapping[str, bool]], Result]) -> Iterator[Result]:
    """Follow the code under each outcome of the settings that it asks for."""
    pending: list[dict[str, bool]] = [{}]
    count = 0
    while pending:
        settings = pending.pop()
        count += 1
        if count > MOST_WAYS:
            raise TooComplex(f"more than {MOST_WAYS} settings decide what runs")
        try:
            result = follow(settings)
        except _UnknownSetting as error:
            pending += [{**settings, error.setting: outcome} for outcome in (False, True)]
        else:
            yield result


@dataclass(eq=False)
class Follower:
    """Takes one way through functions."""

    environment: Environment
    way: Way
    steps: int = 0
    depth: int = 0
    entered: set[str] = field(default_factory=set)
    # The functions that the `with` blocks around a statement call.
    contexts: list[str] = field(default_factory=list)
    # Whether to give up where the turns of a loop or the places of arguments are not known.
    exact: bool = False

    def call(self, function: Function, given: Arguments) -> Value:
        """Follow a function's body; what it returns."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooComplex("its calls are nested too deeply")
        self.entered.add(function.text)
        frame = _Frame(self, function, self._bound(function, given))
        try:
            if isinstance(function.node, ast.Lambda):
                return frame.value(function.node.body)
            frame.block(function.node.body)
        except _Returned as returned:
            return returned.value
        finally:
            self.depth -= 1
        return Known(None)

    def _bound(self, function: Function, given: Arguments) -> dict[str, Value]:
        arguments = function.node.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        positional, named = given
        static = any(_last_name(one) == "staticmethod" for one in _decorators(function))
        if function.first is not None and not static:
            positional = (function.first, *positional)
        scope = dict(function.scope)
        defaults = [*arguments.defaults]
        for name, default in zip(reversed(names), reversed(defaults), strict=False):
            scope[name] = _default(default)
        for argument, keyword_default in zip(
            arguments.kwonlyargs, arguments.kw_defaults, strict=True
        ):
            if keyword_default is not None:
                scope[argument.arg] = _default(keyword_default)
        scope.update(zip(names, positional, strict=False))
        if arguments.vararg is not None:
            scope[arguments.vararg.arg] = Items(tuple(positional[len(names) :]))
        scope.update(named)
        return scope


def _decorators(function: Function) -> list[ast.expr]:
    return getattr(function.node, "decorator_list", [])


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _default(node: ast.expr) -> Value:
    return Known(node.value) if isinstance(node, ast.Constant) else Setting(ast.unparse(node))


@dataclass(eq=False)
class _Frame:
    """One call of a function."""

    follower: Follower
    function: Function
    scope: dict[str, Value]

    @property
    def file(self) -> SourceFile:
        return self.function.file

    @property
    def environment(self) -> Environment:
        return self.follower.environment

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.follower.steps += 1
            if self.follower.steps > MOST_STEPS:
                raise TooComplex("it takes too many steps")
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr():
                self.value(node.value)
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self._assign(target, value)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                self._assign(node.target, self.value(node.value))
            case ast.AugAssign():
                old = self.value(node.target)
                self._assign(node.target, arithmetic(old, node.op, self.value(node.value)))
            case ast.If():
                self.block(node.body if self.truth(node.test) else node.orelse)
            case ast.For():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.With():
                self._with(node)
            case ast.Global():
                for name in node.names:
                    self.environment.stored(DottedName(self.file, name), "", Setting(name))
            case ast.Delete():
                self._delete(node)
            case ast.Try():
                self._try(node)
            case ast.Return():
                raise _Returned(self.value(node.value) if node.value else Known(None))
            case ast.Raise():
                raise Raised(ast.unparse(node))
            case ast.Break():
                raise _Broken
            case ast.Continue():
                raise _Continued
            case ast.FunctionDef():
                self.scope[node.name] = Function(self.file, node, self.scope)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Match():
                raise TooComplex("it has a match statement")

    def _with(self, node: ast.With) -> None:
        contexts = self.follower.contexts
        outside = len(contexts)
        for item in node.items:
            if isinstance(item.context_expr, ast.Call):
                contexts.append(_last_name(item.context_expr.func))
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, value)
        try:
            self.block(node.body)
        finally:
            del contexts[outside:]

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self.environment.stored(self.value(target.value), target.attr, Known(None))
            elif isinstance(target, ast.Subscript):
                self.environment.stored(self.value(target.value), "", Known(None))

    def _for(self, node: ast.For) -> None:
        try:
            for item in self._each(self.value(node.iter), ast.unparse(node.iter)):
                self._assign(node.target, item)
                try:
                    self.block(node.body)
                except _Continued:
                    continue
        except _Broken:
            return
        self.block(node.orelse)

    def _each(self, value: Value, asked: str) -> Sequence[Value]:
        if isinstance(value, Items):
            return value.items
        if self.follower.exact:
            raise TooComplex(f"the items of {asked} are not known")
        if isinstance(value, (Varying, Tensor)):
            there = self.follower.way.decide(Varying(value.text), f"{asked} has an item")
            return (Varying(f"{value.text}[…]"),) if there else ()
        return (Setting(f"{value.text}[…]"),)

    def _while(self, node: ast.While) -> None:
        try:
            while self.truth(node.test):
                self.follower.steps += 1
                if self.follower.steps > MOST_STEPS:
                    raise TooComplex("it takes too many steps")
                try:
                    self.block(node.body)
                except _Continued:
                    continue
        except _Broken:
            return
        self.block(node.orelse)

    def _try(self, node: ast.Try) -> None:
        try:
            fails = any(_acts(handler) for handler in node.handlers) and self.follower.way.decide(
                Setting(f"{self.file.name}:{node.lineno} raises"), f"line {node.lineno} raises"
            )
            if fails:
                self.block(node.handlers[0].body)
            else:
                self._guarded(node)
        finally:
            self.block(node.finalbody)

    def _guarded(self, node: ast.Try) -> None:
        try:
            self.block(node.body)
        except Raised:
            if not node.handlers:
                raise
            self.block(node.handlers[0].body)
        else:
            self.block(node.orelse)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                bound = Imported(alias.asname or alias.name, module, alias.name)
            else:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                bound = Imported(alias.asname or name, name, None)
            self.scope[bound.local] = DottedName(self.file, bound.local, bound)

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.scope[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            count = len(target.elts)
            known = isinstance(value, Items) and len(value.items) == count and value.whole
            for place, part in enumerate(target.elts):
                item = (
                    value.items[place]
                    if known and isinstance(value, Items)
                    else unknown(f"{value.text}[{place}]", value)
                )
                self._assign(part.value if isinstance(part, ast.Starred) else part, item)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            if isinstance(base, Instance):
                base.attributes[target.attr] = value
            else:
                self.environment.stored(base, target.attr, value)
        elif isinstance(target, ast.Subscript):
            self.value(target.slice)
            self.environment.stored(self.value(target.value), "", value)

    def truth(self, node: ast.expr) -> bool:
        return self._is_true(self.value(node), node)

    def _is_true(self, value: Value, node: ast.expr) -> bool:
        if isinstance(value, Known):
            return bool(value.value)
        if isinstance(value, Items):
            return bool(value.items)
        if isinstance(value, (Function, Instance)):
            return True
        return self.follower.way.decide(value, ast.unparse(node))

    def value(self, node: ast.expr) -> Value:
        found = self._value(node)
        # A value that is made of itself twice, some forty times, has no end.
        if not isinstance(found, Known) and len(found.text) > LONGEST_TEXT:
            raise TooComplex("its values have too many parts")
        return found

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                return Known(node.value)
            case ast.Name():
                return self._name(node.id)
            case ast.Attribute():
                return self.attribute(self.value(node.value), node.attr)
            case ast.Subscript():
                return self._item(self.value(node.value), node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BinOp():
                return arithmetic(self.value(node.left), node.op, self.value(node.right))
            case ast.BoolOp():
                return self._boolean(node)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self.value(node.body if self.truth(node.test) else node.orelse)
            case ast.Tuple() | ast.List() | ast.Set():
                return self._display(node.elts)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._comprehension(node)
            case ast.NamedExpr():
                value = self.value(node.value)
                self._assign(node.target, value)
                return value
            case ast.Lambda():
                return Function(self.file, node, self.scope)
            case ast.Call():
                return self._call(node)
            case ast.Starred():
                return self.value(node.value)
        parts = [self.value(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        return unknown(ast.unparse(node), *parts)

    def _name(self, name: str) -> Value:
        if name in self.scope:
            return self.scope[name]
        path = DottedName(self.file, name)
        return self.environment.attribute(path, "") or path

    def attribute(self, base: Value, name: str) -> Value:
        found = self.environment.attribute(base, name)
        if found is not None:
            return found
        if isinstance(base, Instance):
            if name in base.attributes:
                return base.attributes[name]
            method = base.method(name)
            if method is None:
                return Setting(f"{base.text}.{name}")
            is_property = any("property" in _last_name(one) for one in _decorators(method))
            return self.follower.call(method, ((), {})) if is_property else method
        if isinstance(base, DottedName):
            return DottedName(base.file, f"{base.text}.{name}", base.imported)
        if isinstance(base, Tensor):
            return tensors.attribute(base, name)
        return unknown(f"{base.text}.{name}", base)

    def _item(self, base: Value, node: ast.Subscript) -> Value:
        text = f"{base.text}[{ast.unparse(node.slice)}]"
        one = f"[{ast.unparse(node.slice)}]" if _is_number(node.slice) else "[]"
        found = self.environment.attribute(base, one)
        if found is not None:
            return found
        if isinstance(node.slice, ast.Slice):
            lower = self.value(node.slice.lower) if node.slice.lower else Known(0)
            upper = self.value(node.slice.upper) if node.slice.upper else None
            return tensors.sliced(base, text, lower, upper)
        index = self.value(node.slice)
        if isinstance(base, Items) and base.items:
            if not base.whole:
                return self.environment.attribute(base.items[0], one) or base.items[0]
            if isinstance(index, Known) and index.value in range(len(base.items)):
                return base.items[int(index.value)]
        return unknown(text, base, index)

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Known(not self.truth(node.operand))
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, Known):
            return arithmetic(Known(0), ast.Sub(), value)
        return unknown(ast.unparse(node), value)

    def _boolean(self, node: ast.BoolOp) -> Value:
        stops = isinstance(node.op, ast.Or)
        for part in node.values[:-1]:
            value = self.value(part)
            if self._is_true(value, part) is stops:
                return value if isinstance(value, Known) else Known(stops)
        return self.value(node.values[-1])

    def _compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        result: Value = Known(True)
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            custom = self.environment.called(left, type(operator).__name__, ((right,), {}))
            result = custom or comparison(left, operator, right)
            if len(node.ops) > 1:
                if isinstance(result, Known):
                    outcome = bool(result.value)
                else:
                    outcome = self.follower.way.decide(result, ast.unparse(node))
                if not outcome:
                    return Known(False)
            left = right
        return result

    def _display(self, nodes: Sequence[ast.expr]) -> Value:
        items: list[Value] = []
        whole = True
        for node in nodes:
            value = self.value(node)
            if not isinstance(node, ast.Starred):
                items.append(value)
            elif isinstance(value, Items):
                items += value.items
                whole = whole and value.whole
            else:
                items += self._each(value, ast.unparse(node))
                whole = False
        return Items(tuple(items), whole)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        inner = _Frame(self.follower, self.function, dict(self.scope))
        items: list[Value] = []
        whole = inner._generate(node.elt, node.generators, items)
        return Items(tuple(items), whole)

    def _generate(
        self, element: ast.expr, generators: Sequence[ast.comprehension], items: list[Value]
    ) -> bool:
        if not generators:
            items.append(self.value(element))
            return True
        first, *rest = generators
        source = self.value(first.iter)
        whole = isinstance(source, Items) and source.whole
        for item in self._each(source, ast.unparse(first.iter)):
            self._assign(first.target, item)
            if all(self.truth(condition) for condition in first.ifs):
                whole = self._generate(element, rest, items) and whole
        return whole

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Subscript):
            grid = self.value(node.func.slice)
            given = self._given(node)
            kernel = self.value(node.func.value)
            self.environment.launched(kernel, grid, node, given, self.follower.way)
            return Known(None)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self.function.first or Setting("super()")
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node, node.func)
        function = self.value(node.func)
        given = self._given(node)
        answer = self.environment.called(function, "", given)
        if answer is not None:
            return answer
        if isinstance(function, DottedName) and function.imported is None:
            found = _builtin(self, function.text, given, ast.unparse(node))
            if found is not None:
                return found
        return self._entered(function, given, node)

    def _method_call(self, node: ast.Call, target: ast.Attribute) -> Value:
        base = self.value(target.value)
        given = self._given(node)
        found = self.environment.called(base, target.attr, given)
        if found is not None:
            return found
        if _is_super(target.value) and isinstance(base, Instance):
            method = base.method(target.attr, after=self.function.owner)
            return self.follower.call(method, given) if method else Known(None)
        if isinstance(base, Tensor):
            return tensors.method(base, target.attr, given)
        return self._entered(self.attribute(base, target.attr), given, node)

    def _entered(self, function: Value, given: Arguments, node: ast.Call) -> Value:
        if isinstance(function, Function):
            return self.follower.call(function, given)
        if isinstance(function, DottedName):
            own = self.environment.function(function)
            if own is not None:
                return self.follower.call(own, given)
        parts = (*given[0], *given[1].values())
        text = f"{function.text}({', '.join(part.text for part in parts)})"
        if isinstance(function, DottedName) and function.text.split(".")[0] in (
            "torch",
            "np",
            "numpy",
        ):
            created = tensors.created(function.text, text, given)
            if created is not None:
                return created
        if any(isinstance(part, Tensor) for part in parts):
            return Tensor(text, Varying(f"len({text})"))
        return unknown(text, function, *parts)

    def _given(self, node: ast.Call) -> Arguments:
        if self.follower.exact and any(word.arg is None for word in node.keywords):
            raise TooComplex("the names of its arguments are not known")
        positional = self._display(node.args)
        assert isinstance(positional, Items)
        named = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        return positional.items, named


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == "super"


def _acts(handler: ast.ExceptHandler) -> bool:
    """Whether an exception's handler does more than pass or raise."""
    return any(
        isinstance(node, ast.Return)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript))
        for node in ast.walk(handler)
    )


def _builtin(frame: _Frame, name: str, given: Arguments, text: str) -> Value | None:
    """The result of a builtin function; None where the name is no builtin or it is not known."""
    values = given[0]
    if name in ("getattr", "hasattr") and len(values) >= 2 and isinstance(values[1], Known):
        try:
            found = frame.attribute(values[0], str(values[1].value))
        except NoAttribute:
            if name == "hasattr":
                return Known(False)
            if len(values) == 2:
                raise
            return values[2]
        if name == "getattr":
            return found
        return (
            Known(True) if not isinstance(found, (Setting, Varying, DottedName)) else Setting(text)
        )
    if not hasattr(builtins, name) or not values:
        return None
    first = values[0]
    if name in ("any", "all") and isinstance(first, Items):
        return _any_or_all(frame, name == "any", first)
    if name == "len":
        if isinstance(first, Tensor):
            return first.length
        if isinstance(first, Items) and first.whole:
            return Known(len(first.items))
    if name in ("tuple", "list", "sorted", "reversed", "iter") and isinstance(first, Items):
        return first
    if name == "enumerate" and isinstance(first, Items):
        pairs = [
            Items((Known(i) if first.whole else Setting("index"), item))
            for i, item in enumerate(first.items)
        ]
        return Items(tuple(pairs), first.whole)
    if name == "zip":
        return _zipped(frame, values)
    if name == "range":
        return _range(frame, values, text)
    if name in ("min", "max", "sum", "int", "bool", "abs"):
        return _reduced(name, values, text)
    return unknown(text, *values)


def _any_or_all(frame: _Frame, is_any: bool, items: Items) -> Value:
    for item in items.items:
        if isinstance(item, Known):
            outcome = bool(item.value)
        elif isinstance(item, (Items, Function, Instance)):
            outcome = True
        else:
            outcome = frame.follower.way.decide(item, item.text)
        if outcome is is_any:
            return Known(is_any)
    return Known(not is_any)


def _zipped(frame: _Frame, values: tuple[Value, ...]) -> Value:
    columns = [frame._each(value, value.text) for value in values]
    whole = all(isinstance(value, Items) and value.whole for value in values)
    return Items(tuple(Items(tuple(row)) for row in zip(*columns, strict=False)), whole)


def _range(frame: _Frame, values: tuple[Value, ...], text: str) -> Value:
    numbers = [value.value for value in values if isinstance(value, Known)]
    known = len(numbers) == len(values) and all(isinstance(number, int) for number in numbers)
    if known and len(range(*numbers)) <= MOST_TURNS:
        return Items(tuple(map(Known, range(*numbers))))
    return unknown(text, *values)


def _reduced(name: str, values: tuple[Value, ...], text: str) -> Value:
    parts = values[0].items if isinstance(values[0], Items) else values
    if parts and all(isinstance(part, Known) for part in parts):
        numbers = [part.value for part in parts if isinstance(part, Known)]
        try:
            many = name in ("min", "max", "sum")
            return Known(getattr(builtins, name)(numbers if many else numbers[0]))
        except (TypeError, ValueError):
            return Setting(text)
    return unknown(text, *parts)
