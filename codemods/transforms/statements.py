"""Puts statements into a module: at its end, or behind a statement of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from codemods.transforms import names

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def parse_statements(module: cst.Module, text: str) -> list[Statement]:
    """Statements written with four-space indents and LF, as they read in `module`.

    Indents and line ends become the module's, inside of strings too.
    """
    if module.default_indent != " " * 4:
        lines = text.split("\n")
        text = "\n".join(
            module.default_indent * ((len(line) - len(line.lstrip(" "))) // 4) + line.lstrip(" ")
            for line in lines
        )
    text = text.replace("\n", module.default_newline)
    parsed = cst.parse_module(text, config=module.config_for_parsing)
    first, *rest = parsed.body
    first = first.with_changes(leading_lines=[*parsed.header, *first.leading_lines])
    return [_without_indents(one) for one in (first, *rest)]


def _without_indents(statement: Statement) -> Statement:
    """The statement with empty lines above it that stay empty in an indented block."""
    lines = [
        one if one.comment else one.with_changes(indent=False) for one in _leading_lines(statement)
    ]
    return statement.with_changes(leading_lines=lines)


def append(module: cst.Module, text: str, blank_lines: int = 2) -> cst.Module:
    """The module with statements at its end, `blank_lines` empty lines before the first."""
    first, *rest = parse_statements(module, text)
    empty = not (module.body or module.header or module.footer)
    gap = [] if empty else [cst.EmptyLine(indent=False)] * blank_lines
    leading = [*module.footer, *gap, *_leading_lines(first)]
    return module.with_changes(
        body=[*module.body, first.with_changes(leading_lines=leading), *rest],
        footer=[],
        has_trailing_newline=module.has_trailing_newline or empty,
    )


def insert_after(
    module: cst.Module, statement: cst.BaseStatement, new: Sequence[cst.BaseStatement]
) -> cst.Module:
    """The module with statements behind one of its own, at any depth."""
    return _insert(module, statement, new, 1)


def insert_before(
    module: cst.Module, statement: cst.BaseStatement, new: Sequence[cst.BaseStatement]
) -> cst.Module:
    """The module with statements before one of its own and what is above that, comments too."""
    return _insert(module, statement, new, 0)


def _insert(
    module: cst.Module, statement: cst.BaseStatement, new: Sequence[cst.BaseStatement], shift: int
) -> cst.Module:
    *way, block, _ = path_to(module, statement)
    assert isinstance(block, (cst.Module, cst.IndentedBlock))
    place = next(i for i, one in enumerate(block.body) if one is statement) + shift
    body = [*block.body[:place], *new, *block.body[place:]]
    if block is module:
        return module.with_changes(body=body)
    return module.visit(_Replace({block: block.with_changes(body=body)}, {*way}))


def replace(module: cst.Module, by: Mapping[cst.CSTNode, cst.CSTNode]) -> cst.Module:
    """The module with some of its nodes replaced; only what leads to them is visited."""
    way = {node for target in by for node in path_to(module, target)}
    return module.visit(_Replace(by, way))


class _Replace(cst.CSTTransformer):
    def __init__(self, by: Mapping[cst.CSTNode, cst.CSTNode], way: set[cst.CSTNode]) -> None:
        super().__init__()
        self._by = by
        self._way = way

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self._way and node not in self._by

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        return self._by.get(original_node, updated_node)


def path_to(module: cst.Module, target: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes from the module down to `target`, both included."""
    trail: list[cst.CSTNode] = []

    # Only lambdas hold anything but expressions below an expression, and those hold no statement.
    # isinstance() would ask every class of expressions, for each kind of node.
    kinds = type(target).__mro__
    closed: frozenset[type] = frozenset({cst.SimpleStatementLine, cst.BaseExpression})
    if cst.BaseExpression in kinds:
        closed = frozenset()
    elif cst.BaseStatement not in kinds:
        closed = frozenset({cst.BaseExpression})

    def find(node: cst.CSTNode) -> bool:
        trail.append(node)
        if node is target:
            return True
        is_open = closed.isdisjoint(type(node).__mro__)
        if is_open and any(find(child) for child in names.children(node)):
            return True
        trail.pop()
        return False

    if not find(module):
        raise ValueError("the node is not in the module")
    return trail


def line_of(module: cst.Module, statement: cst.BaseStatement) -> int:
    """The line, from 1, on which a statement's own code starts, decorators included."""
    marker = "__a_statement_no_module_holds__"
    marked = insert_before(module, statement, parse_statements(module, f"{marker}\n"))
    before = marked.code[: marked.code.index(marker)]
    leading = sum(module.code_for_node(one).count("\n") for one in _leading_lines(statement))
    return before.count("\n") + leading + 1


def _leading_lines(statement: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    return getattr(statement, "leading_lines", ())
