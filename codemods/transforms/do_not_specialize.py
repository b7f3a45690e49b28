"""Adds a parameter's name to `do_not_specialize` of a Triton kernel's jit decorator.

Triton specialises an integer argument by class (1, divisible by 16, other) and compiles again for
each; a parameter listed in `do_not_specialize` gets one kernel for all its values. Entries are
names or positions (triton/runtime/jit.py, `JITFunction.__init__`). A name that is no parameter is
accepted by Triton in silence, so the parameter is looked for first.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import libcst as cst

from codemods.transforms.arguments import Fit, append_argument, append_element
from codemods.transforms.jit import Scope, parameters
from codemods.transforms.layout import NOTHING

KEYWORD = "do_not_specialize"


class Merge(Enum):
    """The result of adding the parameter to one decorator."""

    ADDED = "added"
    MERGED = "merged"
    PRESENT = "present"
    UNKNOWN = "unknown"


def unspecialised(module: cst.Module, kernel: cst.FunctionDef) -> frozenset[str]:
    """The parameters that a kernel's decorator lists; none where it cannot be read."""
    scope = Scope.of(module)
    named = [parameter.name.value for parameter in parameters(kernel)]
    for decorator in kernel.decorators:
        call = decorator.decorator
        if isinstance(call, cst.Call) and scope.is_jit(call):
            for argument in call.args:
                if _is_keyword(argument, KEYWORD):
                    found = _entries(argument.value, scope.constants, set()) or set()
                    return frozenset(
                        named[one] if isinstance(one, int) and one < len(named) else str(one)
                        for one in found
                    )
    return frozenset()


class AddDoNotSpecialize(cst.CSTTransformer):
    """Rewrites the jit decorator of every definition of `kernel`; `merges` says what it found.

    `left` says of each definition that has no such decorator, or no such parameter, why it is left
    alone. With `definitions`, only those nodes are rewritten, whatever else has the name. `width`
    is the longest line, in characters, that the result is laid out for.
    """

    def __init__(
        self,
        module: cst.Module,
        kernel: str,
        parameter: str,
        definitions: tuple[cst.FunctionDef, ...] | None = None,
        width: int = 88,
    ) -> None:
        super().__init__()
        self._module = module
        self._step = module.default_indent
        self._fit = Fit(module, width)
        self.kernel = kernel
        self.parameter = parameter
        self.definitions = definitions
        self.merges: list[Merge] = []
        self.left: list[str] = []
        self._around: list[cst.FunctionDef | cst.ClassDef] = []
        self._scope = Scope({}, {})
        self._indent = ""

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._indent += self._indent_of(node)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        self._indent = self._indent.removesuffix(self._indent_of(original_node))
        return updated_node

    def _indent_of(self, block: cst.IndentedBlock) -> str:
        return self._step if block.indent is None else block.indent

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._around.append(node)

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        self._around.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._around.append(node)
        return self.definitions is None

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._around.pop()
        if original_node.name.value != self.kernel:
            return updated_node
        if self.definitions is not None and original_node not in self.definitions:
            return updated_node
        self._scope = Scope.of(self._module, self._around)
        why = self._why_left(original_node)
        if why is not None:
            self.left.append(why)
            return updated_node
        position = [one.name.value for one in parameters(original_node)].index(self.parameter)
        decorators = [
            self._decorate(decorator, position)
            if self._scope.is_jit(decorator.decorator)
            else decorator
            for decorator in updated_node.decorators
        ]
        return updated_node.with_changes(decorators=decorators)

    def _why_left(self, function: cst.FunctionDef) -> str | None:
        """Why a function is left alone, None where its decorator is to list the parameter."""
        decorators = [one.decorator for one in function.decorators]
        if not any(map(self._scope.is_jit, decorators)):
            functions = (one.func if isinstance(one, cst.Call) else one for one in decorators)
            code = [f"@{' '.join(self._module.code_for_node(one).split())}" for one in functions]
            seen = f" that the tool knows as Triton's jit: {', '.join(code)}" if code else ""
            return f"{self.kernel} has no decorator{seen}"
        params = {one.name.value: one for one in parameters(function)}
        if self.parameter not in params:
            listed = ", ".join(params) or "none"
            return f"{self.kernel} has no parameter {self.parameter}; its parameters are {listed}"
        if self._scope.is_constexpr(params[self.parameter]):
            return (
                f"{self.parameter} of {self.kernel} is a constexpr: each of its values is a "
                "kernel of its own"
            )
        return None

    def _decorate(self, decorator: cst.Decorator, position: int) -> cst.Decorator:
        target = decorator.decorator
        if not isinstance(target, cst.Call):
            self.merges.append(Merge.ADDED)
            called = cst.Call(func=target, args=[self._argument()])
            return self._fitted(decorator, called)
        existing = next((arg for arg in target.args if _is_keyword(arg, KEYWORD)), None)
        if existing is not None:
            value, merge = self._merge(existing.value, position)
            self.merges.append(merge)
            if merge is not Merge.MERGED:
                return decorator
            return self._fitted(decorator, target.with_deep_changes(existing, value=value))
        if any(arg.star for arg in target.args):
            self.merges.append(Merge.UNKNOWN)
            return decorator
        self.merges.append(Merge.ADDED)
        return self._fitted(decorator, append_argument(target, self._argument(), self._step))

    def _fitted(self, decorator: cst.Decorator, called: cst.Call) -> cst.Decorator:
        grown = decorator.with_changes(decorator=called)
        return self._fit.decorator(decorator, grown, self._indent)

    def _argument(self) -> cst.Arg:
        return cst.Arg(
            keyword=cst.Name(KEYWORD),
            value=cst.List([cst.Element(self._entry())]),
            equal=cst.AssignEqual(NOTHING, NOTHING),
        )

    def _entry(self) -> cst.SimpleString:
        return cst.SimpleString(f'"{self.parameter}"')

    def _merge(self, value: cst.BaseExpression, position: int) -> tuple[cst.BaseExpression, Merge]:
        if isinstance(value, cst.Name) and value.value == "None":
            return cst.List([cst.Element(self._entry())]), Merge.MERGED
        entries = _entries(value, self._scope.constants, set())
        if entries is None:
            return value, Merge.UNKNOWN
        if self.parameter in entries or position in entries:
            return value, Merge.PRESENT
        if isinstance(value, (cst.List, cst.Tuple)):
            return append_element(value, self._entry(), self._step), Merge.MERGED
        starred = cst.StarredElement(value)
        return cst.List([starred, cst.Element(self._entry())]), Merge.MERGED


def _entries(
    value: cst.BaseExpression, constants: Mapping[str, cst.BaseExpression], seen: set[str]
) -> set[str | int] | None:
    """The entries of an expression, None where the source alone does not tell."""
    if isinstance(value, (cst.List, cst.Tuple, cst.Set)):
        found: set[str | int] = set()
        for element in value.elements:
            if isinstance(element, cst.StarredElement):
                inner = _entries(element.value, constants, seen)
                if inner is None:
                    return None
                found |= inner
            elif isinstance(element.value, cst.SimpleString):
                found.add(str(element.value.evaluated_value))
            elif isinstance(element.value, cst.Integer):
                found.add(element.value.evaluated_value)
            else:
                return None
        return found
    if isinstance(value, cst.Name) and value.value not in seen:
        if value.value in constants:
            return _entries(constants[value.value], constants, seen | {value.value})
        return None
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        left = _entries(value.left, constants, seen)
        right = _entries(value.right, constants, seen)
        return None if left is None or right is None else left | right
    return None


def _is_keyword(argument: cst.Arg, keyword: str) -> bool:
    return argument.keyword is not None and argument.keyword.value == keyword
