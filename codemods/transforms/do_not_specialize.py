"""Adds a parameter's name to `do_not_specialize` of a Triton kernel's jit decorator.

Triton specialises an integer argument by class (1, divisible by 16, other) and compiles anew for
each; a parameter listed in `do_not_specialize` gets one kernel for all its values. Entries are
names or positions (triton/runtime/jit.py, `JITFunction.__init__`). A name that is no parameter is
accepted by Triton in silence, so `parameters` is there to check first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import libcst as cst

from codemods.transforms import names
from codemods.transforms.arguments import Fit, append_argument, append_element
from codemods.transforms.layout import NOTHING

KEYWORD = "do_not_specialize"


class Merge(Enum):
    """What adding the parameter to one decorator came to."""

    ADDED = "added"
    MERGED = "merged"
    PRESENT = "present"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class JitNames:
    """What a module calls Triton and its `jit`: `import triton as tr`, `from triton import jit`."""

    modules: frozenset[str]
    functions: frozenset[str]

    @classmethod
    def of(cls, module: cst.Module) -> JitNames:
        bound = tuple(names.imports(module))
        taken = {one.local for one in bound} | {name for name, _ in names.assignments(module)}
        modules = {
            one.local
            for one in bound
            if one.name == "triton" or (one.name is None and one.module == "triton")
        }
        # Nothing in sight binds the name: it comes with a star import.
        return cls(
            frozenset(modules if "triton" in taken else modules | {"triton"}),
            frozenset(one.local for one in bound if one.name == "jit" and "triton" in one.module),
        )

    def is_jit(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is Triton's `jit`, called or bare."""
        path = names.dotted(node.func if isinstance(node, cst.Call) else node)
        if path is None:
            return False
        module, _, last = path.rpartition(".")
        return path in self.functions or (last == "jit" and module in self.modules)


def parameters(kernel: cst.FunctionDef) -> Iterator[cst.Param]:
    """A kernel's parameters in the order in which Triton counts them."""
    yield from kernel.params.posonly_params
    yield from kernel.params.params
    yield from kernel.params.kwonly_params


def is_constexpr(parameter: cst.Param) -> bool:
    """Whether a parameter is a compile-time constant: each of its values is its own kernel."""
    if parameter.annotation is None:
        return False
    annotation = parameter.annotation.annotation
    if isinstance(annotation, cst.SimpleString):
        return str(annotation.evaluated_value).endswith("constexpr")
    return (names.dotted(annotation) or "").split(".")[-1] == "constexpr"


def unspecialised(module: cst.Module, kernel: cst.FunctionDef) -> frozenset[str]:
    """The parameters that a kernel's decorator is seen to list; none where it cannot be read."""
    jit = JitNames.of(module)
    named = [parameter.name.value for parameter in parameters(kernel)]
    for decorator in kernel.decorators:
        call = decorator.decorator
        if isinstance(call, cst.Call) and jit.is_jit(call):
            for argument in call.args:
                if _is_keyword(argument, KEYWORD):
                    found = _entries(argument.value, _constants(module), set()) or set()
                    return frozenset(
                        named[one] if isinstance(one, int) and one < len(named) else str(one)
                        for one in found
                    )
    return frozenset()


class AddDoNotSpecialize(cst.CSTTransformer):
    """Rewrites the jit decorator of every definition of `kernel`; `merges` says what it found.

    With `definitions`, only those nodes are rewritten, whatever else has the name. `width` is the
    longest line, in characters, that the result is laid out for.
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
        self._step = module.default_indent
        self._fit = Fit(module, width)
        self.kernel = kernel
        self.parameter = parameter
        self.definitions = definitions
        self.merges: list[Merge] = []
        self._jit = JitNames.of(module)
        self._constants = _constants(module)
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

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        if original_node.name.value != self.kernel:
            return updated_node
        if self.definitions is not None and original_node not in self.definitions:
            return updated_node
        position = next(
            (
                index
                for index, parameter in enumerate(parameters(original_node))
                if parameter.name.value == self.parameter and not is_constexpr(parameter)
            ),
            None,
        )
        if position is None:
            return updated_node
        decorators = [
            self._decorate(decorator, position)
            if self._jit.is_jit(decorator.decorator)
            else decorator
            for decorator in updated_node.decorators
        ]
        return updated_node.with_changes(decorators=decorators)

    def _decorate(self, decorator: cst.Decorator, position: int) -> cst.Decorator:
        target = decorator.decorator
        if not isinstance(target, cst.Call):
            self.merges.append(Merge.ADDED)
            called = cst.Call(func=target, args=[self._argument()])
            return self._fit.decorator(decorator.with_changes(decorator=called), self._indent)
        existing = next((arg for arg in target.args if _is_keyword(arg, KEYWORD)), None)
        if existing is not None:
            value, merge = self._merge(existing.value, position)
            self.merges.append(merge)
            if merge is not Merge.MERGED:
                return decorator
            grown = decorator.with_deep_changes(existing, value=value)
            return self._fit.decorator(grown, self._indent)
        if any(arg.star for arg in target.args):
            self.merges.append(Merge.UNKNOWN)
            return decorator
        self.merges.append(Merge.ADDED)
        called = append_argument(target, self._argument(), self._step)
        return self._fit.decorator(decorator.with_changes(decorator=called), self._indent)

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
        entries = _entries(value, self._constants, set())
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
    """The entries an expression comes to, None where the source alone does not tell."""
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


def _constants(module: cst.Module) -> dict[str, cst.BaseExpression]:
    """What a module's names stand for, where they are assigned once."""
    found: dict[str, list[cst.BaseExpression]] = {}
    for name, value in names.assignments(module):
        found.setdefault(name, []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}
