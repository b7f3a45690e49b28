"""Adds a name to a `from … import …`, sorted and laid out as isort has it, or takes it out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

import libcst as cst

from codemods.transforms import names
from codemods.transforms.layout import NOTHING, SPACE, bare, line_break, split
from codemods.transforms.statements import insert_after, parse_statements, replace


def extended(node: cst.ImportFrom, name: str, width: int = 88) -> cst.ImportFrom:
    """The import with one name more; the same import where it has the name or imports all."""
    if isinstance(node.names, cst.ImportStar):
        return node
    aliases = tuple(node.names)
    if any(alias.evaluated_name == name and alias.asname is None for alias in aliases):
        return node
    place = next(
        (i for i, alias in enumerate(aliases) if _sort_key(alias) > _sort_key_of(name)),
        len(aliases),
    )
    added = cst.ImportAlias(cst.Name(name))
    opening = node.lpar.whitespace_after if node.lpar else NOTHING
    if isinstance(opening, cst.ParenthesizedWhitespace):
        return _in_lines(node, aliases, place, added, opening)
    grown = node.with_changes(names=_on_one_line(aliases[:place], added, aliases[place:]))
    if node.lpar is not None or len(cst.Module([]).code_for_node(grown)) <= width:
        return grown
    return _broken(grown)


def shortened(module: cst.Module, node: cst.ImportFrom, name: str) -> cst.ImportFrom | None:
    """The import as it was before `extended` gave it the name, None where that is unknown."""
    if isinstance(node.names, cst.ImportStar):
        return None
    code = module.code_for_node(node)
    kept = [one for one in node.names if one.evaluated_name != name]
    listed = ", ".join(module.code_for_node(one).rstrip(" ,\r\n") for one in kept)
    candidates = (
        f"{code.partition('import')[0]}import {listed}",
        re.sub(rf"[ \t]*\b{name},?\r?\n", "", code),
        re.sub(rf"\b{name}, |, {name}\b", "", code),
    )
    for candidate in candidates:
        if not kept or candidate == code:
            continue
        with suppress(cst.ParserSyntaxError):
            line = cst.parse_statement(candidate, config=module.config_for_parsing)
            less = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
            if (
                isinstance(less, cst.ImportFrom)
                and module.code_for_node(extended(less, name)) == code
            ):
                return less
    return None


def without_from_import(module: cst.Module, source: str, name: str) -> cst.Module:
    """The module as it was before `with_from_import`, the same where that is unknown."""
    for candidate in _without_from_import(module, source, name):
        if with_from_import(candidate, source, name).code == module.code:
            return candidate
    return module


def _without_from_import(module: cst.Module, source: str, name: str) -> Iterator[cst.Module]:
    for line in _import_lines(module):
        small = line.body[0]
        if not isinstance(small, cst.ImportFrom) or names.import_module(small) != source:
            continue
        less = shortened(module, small, name)
        if less is not None:
            yield replace(module, {small: less})
            continue
        place = module.body.index(line)
        before, after = module.body[:place], module.body[place + 1 :]
        yield module.with_changes(body=[*before, *after])
        if after:
            first = after[0].with_changes(leading_lines=line.leading_lines)
            yield module.with_changes(body=[*before, first, *after[1:]])


def with_from_import(module: cst.Module, source: str, name: str) -> cst.Module:
    """The module with `from SOURCE import NAME` of the standard library, in isort's place.

    An import of SOURCE is extended; else a line is added to the standard library's imports, or
    before the first import, a section of its own.
    """
    lines = _import_lines(module)
    for line in lines:
        small = line.body[0]
        if isinstance(small, cst.ImportFrom) and names.import_module(small) == source:
            return replace(module, {small: extended(small, name)})
    new = parse_statements(module, f"from {source} import {name}\n")
    standard = [line for line in lines if _section(line) == "standard"]
    before = [line for line in standard if _line_key(line) < (1, source)]
    if before:
        return insert_after(module, before[-1], new)
    first = next((line for line in lines if _section(line) != "future"), None)
    if first is None:
        raise ValueError("the module imports nothing")
    gap = [] if first in standard else [cst.EmptyLine(indent=False)]
    added = new[0].with_changes(leading_lines=first.leading_lines)
    block = [*module.body]
    place = block.index(first)
    block[place : place + 1] = [added, first.with_changes(leading_lines=gap)]
    return module.with_changes(body=block)


def _import_lines(module: cst.Module) -> list[cst.SimpleStatementLine]:
    return [
        statement
        for statement in names.statements(module)
        if isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], (cst.Import, cst.ImportFrom))
    ]


def _section(line: cst.SimpleStatementLine) -> str:
    module = _line_key(line)[1]
    if module == "__future__":
        return "future"
    return "standard" if module.split(".")[0] in sys.stdlib_module_names else "other"


def _line_key(line: cst.SimpleStatementLine) -> tuple[int, str]:
    # isort puts `import x` lines before `from x import y` lines within a section.
    small = line.body[0]
    if isinstance(small, cst.ImportFrom):
        return 1, names.import_module(small)
    assert isinstance(small, cst.Import)
    return 0, names.dotted(small.names[0].name) or ""


def _in_lines(
    node: cst.ImportFrom,
    aliases: tuple[cst.ImportAlias, ...],
    place: int,
    added: cst.ImportAlias,
    opening: cst.ParenthesizedWhitespace,
) -> cst.ImportFrom:
    if place < len(aliases):
        added = added.with_changes(comma=cst.Comma(whitespace_after=bare(opening)))
        return node.with_changes(names=[*aliases[:place], added, *aliases[place:]])
    assert node.rpar is not None
    *others, last = aliases
    if isinstance(last.comma, cst.Comma):
        # What comes before the bracket belongs to the comma.
        between, closing = split(last.comma.whitespace_after, opening)
        added = added.with_changes(comma=cst.Comma(whitespace_after=closing))
        rpar = node.rpar
    else:
        between, closing = split(node.rpar.whitespace_before, opening)
        rpar = node.rpar.with_changes(whitespace_before=closing)
    last = last.with_changes(comma=cst.Comma(whitespace_after=between))
    return node.with_changes(names=[*others, last, added], rpar=rpar)


def _on_one_line(
    before: Sequence[cst.ImportAlias], added: cst.ImportAlias, after: Sequence[cst.ImportAlias]
) -> list[cst.ImportAlias]:
    spaced = cst.Comma(whitespace_after=SPACE)
    if after:
        return [*before, added.with_changes(comma=spaced), *after]
    *others, last = before
    return [*others, last.with_changes(comma=spaced), added]


def _broken(node: cst.ImportFrom) -> cst.ImportFrom:
    assert not isinstance(node.names, cst.ImportStar)
    *others, last = node.names
    between = cst.Comma(whitespace_after=line_break(" " * 4))
    return node.with_changes(
        lpar=cst.LeftParen(whitespace_after=line_break(" " * 4)),
        names=[
            *(alias.with_changes(comma=between) for alias in others),
            last.with_changes(comma=cst.Comma()),
        ],
        rpar=cst.RightParen(whitespace_before=line_break("")),
    )


def _sort_key(alias: cst.ImportAlias) -> tuple[int, str]:
    return _sort_key_of(alias.evaluated_name)


def _sort_key_of(name: str) -> tuple[int, str]:
    # isort's order-by-type: constants, then classes, then the rest.
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name
