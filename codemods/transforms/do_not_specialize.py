"""Adds a parameter's name to `do_not_specialize` of a Triton kernel's jit decorator.

Triton specialises an integer argument by class (1, divisible by 16, other) and compiles anew for
each; a parameter listed in `do_not_specialize` gets one kernel for all its values. Entries are
names or positions (triton/runtime/jit.py, `JITFunction.__init__`). A name that is no parameter is
accepted by Triton in silence, so `parameters` is there to check first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import libcst as cst

from codemods.transforms import names
from codemods.transforms.layout import NOTHING, SPACE, breaks, line_break, split

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
        return cls(
            frozenset(
                one.local
                for one in bound
                if one.name == "triton" or (one.name is None and one.module == "triton")
            ),
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
        self._module = module
        self.width = width
        self.kernel = kernel
        self.parameter = parameter
        self.definitions = definitions
        self.merges: list[Merge] = []
        self._jit = JitNames.of(module)
        self._constants = dict(names.assignments(module))

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
                if parameter.name.value == self.parameter
            ),
            None,
        )
        if position is None:
            return updated_node
        decorators = [
            self._fit(self._decorate(decorator, position))
            if self._jit.is_jit(decorator.decorator)
            else decorator
            for decorator in updated_node.decorators
        ]
        return updated_node.with_changes(decorators=decorators)

    def _decorate(self, decorator: cst.Decorator, position: int) -> cst.Decorator:
        target = decorator.decorator
        if not isinstance(target, cst.Call):
            self.merges.append(Merge.ADDED)
            return decorator.with_changes(decorator=cst.Call(func=target, args=[self._argument()]))
        existing = next((arg for arg in target.args if _is_keyword(arg, KEYWORD)), None)
        if existing is not None:
            value, merge = self._merge(existing.value, position)
            self.merges.append(merge)
            return decorator.with_deep_changes(existing, value=value)
        if any(arg.star for arg in target.args):
            self.merges.append(Merge.UNKNOWN)
            return decorator
        self.merges.append(Merge.ADDED)
        return decorator.with_changes(decorator=_append_argument(target, self._argument()))

    def _fit(self, decorator: cst.Decorator) -> cst.Decorator:
        """Break a decorator that has become longer than a line, as ruff and black would."""
        code = self._module.code_for_node(decorator.with_changes(leading_lines=[]))
        call = decorator.decorator
        if len(code.splitlines()) != 1 or len(code.rstrip()) <= self.width:
            return decorator
        if not isinstance(call, cst.Call):
            return decorator
        *others, last = call.args
        step = len(self._module.default_indent)
        spread = [*others, last.with_changes(whitespace_after_arg=line_break(0))]
        inside = sum(len(self._module.code_for_node(arg)) for arg in call.args)
        if step + inside > self.width:
            between = cst.Comma(whitespace_after=line_break(step))
            closing = cst.Comma(whitespace_after=line_break(0))
            spread = [*(arg.with_changes(comma=between) for arg in others)]
            spread.append(last.with_changes(comma=closing))
        return decorator.with_changes(
            decorator=call.with_changes(whitespace_before_args=line_break(step), args=spread)
        )

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
        entries = self._entries(value, set())
        if entries is None:
            return value, Merge.UNKNOWN
        if self.parameter in entries or position in entries:
            return value, Merge.PRESENT
        if isinstance(value, (cst.List, cst.Tuple)):
            return _append_element(value, self._entry()), Merge.MERGED
        starred = cst.StarredElement(value)
        return cst.List([starred, cst.Element(self._entry())]), Merge.MERGED

    def _entries(self, value: cst.BaseExpression, seen: set[str]) -> set[str | int] | None:
        """The entries an expression comes to, None where the source alone does not tell."""
        if isinstance(value, (cst.List, cst.Tuple, cst.Set)):
            found: set[str | int] = set()
            for element in value.elements:
                if isinstance(element, cst.StarredElement):
                    inner = self._entries(element.value, seen)
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
            if value.value in self._constants:
                return self._entries(self._constants[value.value], seen | {value.value})
            return None
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            left, right = self._entries(value.left, seen), self._entries(value.right, seen)
            return None if left is None or right is None else left | right
        return None


def _is_keyword(argument: cst.Arg, keyword: str) -> bool:
    return argument.keyword is not None and argument.keyword.value == keyword


def _append_argument(call: cst.Call, argument: cst.Arg) -> cst.Call:
    """A call with one argument more, laid out as its last one is."""
    if not call.args:
        return call.with_changes(args=[argument])
    *others, last = call.args
    if isinstance(last.comma, cst.Comma) and breaks(call.whitespace_before_args):
        # One argument a line with a trailing comma: ours gets a line and a comma too.
        between, closing = split(last.comma.whitespace_after, call.whitespace_before_args)
        return call.with_changes(
            args=[
                *others,
                last.with_changes(comma=last.comma.with_changes(whitespace_after=between)),
                argument.with_changes(comma=cst.Comma(whitespace_after=closing)),
            ]
        )
    return call.with_changes(
        args=[
            *others,
            last.with_changes(
                comma=cst.Comma(whitespace_after=SPACE),
                whitespace_after_arg=NOTHING,
            ),
            argument.with_changes(whitespace_after_arg=last.whitespace_after_arg),
        ]
    )


def _append_element(
    sequence: cst.List | cst.Tuple, entry: cst.SimpleString
) -> cst.List | cst.Tuple:
    """A list or tuple with one element more, laid out and quoted as its last one is."""
    if not sequence.elements:
        return sequence.with_changes(elements=[cst.Element(entry)])
    *others, last = sequence.elements
    if isinstance(last.value, cst.SimpleString) and last.value.quote == "'":
        entry = cst.SimpleString(entry.value.replace('"', "'"))
    comma = last.comma
    if isinstance(comma, cst.Comma) and breaks(_opening(sequence)):
        between, closing = split(_closing(sequence), _opening(sequence))
        elements = [
            *others,
            last.with_changes(comma=comma.with_changes(whitespace_after=between)),
            cst.Element(entry, comma=cst.Comma()),
        ]
        return _closed_by(sequence.with_changes(elements=elements), closing)
    # A tuple of one needs its comma, a longer one does not.
    lone = isinstance(sequence, cst.Tuple) and not others
    kept = comma if isinstance(comma, cst.Comma) and not lone else cst.MaybeSentinel.DEFAULT
    spaced = cst.Comma(whitespace_after=SPACE)
    return sequence.with_changes(
        elements=[*others, last.with_changes(comma=spaced), cst.Element(entry, comma=kept)]
    )


def _opening(sequence: cst.List | cst.Tuple) -> cst.BaseParenthesizableWhitespace:
    if isinstance(sequence, cst.List):
        return sequence.lbracket.whitespace_after
    return sequence.lpar[0].whitespace_after if sequence.lpar else NOTHING


def _closing(sequence: cst.List | cst.Tuple) -> cst.BaseParenthesizableWhitespace:
    if isinstance(sequence, cst.List):
        return sequence.rbracket.whitespace_before
    return sequence.rpar[0].whitespace_before if sequence.rpar else NOTHING


def _closed_by(
    sequence: cst.List | cst.Tuple, closing: cst.BaseParenthesizableWhitespace
) -> cst.List | cst.Tuple:
    if isinstance(sequence, cst.List):
        return sequence.with_changes(
            rbracket=sequence.rbracket.with_changes(whitespace_before=closing)
        )
    *others, last = sequence.rpar
    return sequence.with_changes(rpar=[*others, last.with_changes(whitespace_before=closing)])
