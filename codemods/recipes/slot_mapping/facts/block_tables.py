"""The runner's block tables: what the warm-up calls on them, and whether they take it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from codemods.engine.classes import Lineage, lineage
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.facts.names import BLOCK_TABLE, BLOCK_TABLE_CLASS, METHOD
from codemods.recipes.warm_up import warmup_edit
from codemods.transforms import names
from codemods.transforms.statements import line_of

TABLES_CLASS = "MultiGroupBlockTable"

# What the function calls on the tables, and the arguments in the order in which it gives them.
_CALLS = {
    "add_row": ("block_ids", "row_idx"),
    "commit_block_table": ("num_reqs",),
    METHOD: ("num_reqs", "query_start_loc", "positions"),
}
_CLEAR_ROW = {"clear_row": ("row_idx",)}
# What one table is asked for where the function makes several launches.
LIMITS = ("max_num_reqs", "max_num_batched_tokens")


class Tables(NamedTuple):
    """The classes of the tables of all KV cache groups, and of one of them, as `file` has them."""

    file: SourceFile
    groups: Lineage | None
    one: Lineage | None

    @classmethod
    def of(cls, sources: Sources, file: SourceFile) -> Tables:
        return cls(
            file,
            lineage(sources, file, TABLES_CLASS),
            lineage(sources, file, BLOCK_TABLE_CLASS),
        )


def check_interface(tables: Tables, attributes: tuple[str, ...] = ()) -> None:
    """Refuse a tree whose block tables lack what the function calls, or one of these attributes."""
    groups, one = _required(tables, TABLES_CLASS), _required(tables, BLOCK_TABLE_CLASS)
    for name, given in (_CALLS | (_CLEAR_ROW if has_clear_row(tables) else {})).items():
        _check_method(groups, name, given)
    _check_attribute(groups, "block_tables", _MAPPINGS)
    _check_attribute(one, "num_blocks_per_row", (*_MAPPINGS, *_LISTS))
    for attribute in attributes:
        _check_attribute(one, attribute, ())
    if marks_rows(tables) or not has_clear_row(tables):
        _check_buffer(one, "gpu" if has_clear_row(tables) else "np")
    if marks_rows(tables) and not has_clear_row(tables):
        raise _changed(
            one, one.own.node, f"{BLOCK_TABLE_CLASS} marks rows to commit and has no clear_row"
        )


def check_classes(tables: Tables) -> None:
    """Refuse a tree that lacks one of the two classes."""
    _required(tables, TABLES_CLASS)
    _required(tables, BLOCK_TABLE_CLASS)


def _check_method(groups: Lineage, name: str, given: tuple[str, ...]) -> None:
    owner, found = next(groups.methods(name), (groups.own, None))
    if found is None or not _takes(found, given):
        signature = owner.file.module.code_for_node(found.params) if found else "no such method"
        raise _changed(
            groups,
            found or owner.node,
            f"expected {TABLES_CLASS}.{name} to take ({', '.join(given)}), found ({signature})",
            owner.file,
        )


def _check_attribute(
    classes: Lineage, attribute: str, wrong: tuple[type[cst.BaseExpression], ...]
) -> None:
    name = classes.own.name
    if any(isinstance(value, wrong) for value in _assigned(classes, f"self.{attribute}")):
        what = f"{name}.{attribute} is of another type than upstream's"
    elif not _mentions(classes, f"self.{attribute}"):
        what = f"expected {name} to have {attribute}, found none"
    else:
        return
    raise _changed(classes, classes.own.node, what)


def _check_buffer(one: Lineage, side: str) -> None:
    """Refuse tables where no code uses that side of a buffer for their rows."""
    if not _mentions(one, f"self.block_table.{side}"):
        raise _changed(
            one, one.own.node, f"expected {one.own.name} to use block_table.{side}, found none"
        )


def _changed(
    classes: Lineage, node: cst.BaseStatement, what: str, file: SourceFile | None = None
) -> Refusal:
    file = file or classes.own.file
    return Refusal(
        Reason.SIGNATURE_CHANGED,
        f"{what}; the warm-up has to be written for this tree; {warmup_edit.WITHOUT}",
        file.name,
        line_of(file.module, node),
    )


def _required(tables: Tables, name: str) -> Lineage:
    found = tables.groups if name == TABLES_CLASS else tables.one
    if found is None:
        raise Refusal(
            Reason.SIGNATURE_CHANGED, f"expected a class {name} in {BLOCK_TABLE}", tables.file.name
        )
    return found


_MAPPINGS = (cst.Dict, cst.DictComp)
_LISTS = (cst.List, cst.ListComp, cst.BinaryOperation)


def _assigned(classes: Lineage, path: str) -> Iterator[cst.BaseExpression]:
    """The values that the classes' methods give an attribute."""
    for _, constructor in classes.methods("__init__"):
        for node in names.descend(constructor.body):
            if isinstance(node, cst.Assign):
                targets, value = [one.target for one in node.targets], node.value
            elif isinstance(node, cst.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            else:
                continue
            if any(names.dotted(target) == path for target in targets):
                yield value


def _mentions(classes: Lineage, path: str) -> bool:
    return any(
        isinstance(node, cst.Attribute) and names.dotted(node) == path
        for one in classes.classes
        for method in names.walk(one.body)
        if isinstance(method, cst.FunctionDef)
        for node in names.descend(method.body)
    )


def _takes(function: cst.FunctionDef, given: tuple[str, ...]) -> bool:
    """Whether a method can be called with these positional arguments, under whatever names.

    One that has the names in another order means something else by them.
    """
    positional = [*function.params.posonly_params, *function.params.params][1:]
    required = sum(1 for parameter in positional if parameter.default is None)
    keywords = any(parameter.default is None for parameter in function.params.kwonly_params)
    spread = isinstance(function.params.star_arg, cst.Param)
    places = {parameter.name.value: i for i, parameter in enumerate(positional)}
    return (
        required <= len(given)
        and (spread or len(given) <= len(positional))
        and not keywords
        and all(places.get(name, i) == i for i, name in enumerate(given))
    )


def has_clear_row(tables: Tables) -> bool:
    """Whether a row can be cleared by name; between 0.18.1 and 0.19.0 it cannot."""
    return tables.groups is not None and any(True for _ in tables.groups.methods("clear_row"))


def marks_rows(tables: Tables) -> bool:
    """Whether commit_block_table picks rows by a mark that adding a row sets and clearing not."""
    one = tables.one
    if one is None:
        return False
    asked = {name for method in _reached(one, "commit_block_table") for name in _asked(method)}
    if not asked:
        return False
    added = {
        name
        for start in ("add_row", "append_row")
        for method in _reached(one, start)
        for name in _changes(method)
    }
    cleared = {name for method in _reached(one, "clear_row") for name in _changes(method)}
    return bool((asked & added) - {"num_blocks_per_row", "block_table"} - cleared)


def _reached(one: Lineage, name: str) -> list[cst.FunctionDef]:
    """A method and the own methods that it calls."""
    found: list[cst.FunctionDef] = []
    pending = [name]
    while pending:
        _, method = next(one.methods(pending.pop()), (None, None))
        if method is not None and method not in found:
            found.append(method)
            paths = (names.dotted(call.func) or "" for call in names.calls(method.body))
            pending += [path.removeprefix("self.") for path in paths if path.count(".") == 1]
    return found


def _asked(method: cst.FunctionDef) -> Iterator[str]:
    """The attributes of `self` that decide which rows are gone through."""
    for node in names.descend(method.body):
        parts: list[cst.CSTNode] = []
        if isinstance(node, (cst.If, cst.While, cst.IfExp, cst.CompIf)):
            parts = [node.test]
        elif isinstance(node, (cst.For, cst.CompFor)):
            parts = [node.iter]
        elif isinstance(node, cst.Subscript):
            parts = [*node.slice]
        yield from _own_attributes(parts)


def _changes(method: cst.FunctionDef) -> Iterator[str]:
    """The attributes of `self` that a method sets, or calls something on."""
    for node in names.descend(method.body):
        parts: list[cst.CSTNode] = []
        if isinstance(node, cst.Assign):
            parts = [target.target for target in node.targets]
        elif isinstance(node, (cst.AnnAssign, cst.AugAssign)):
            parts = [node.target]
        elif isinstance(node, cst.Call):
            parts = [node.func]
        # What is changed is the attribute, not what an index of it reads.
        whole = [part.value if isinstance(part, cst.Subscript) else part for part in parts]
        yield from _own_attributes(whole)


def _own_attributes(nodes: list[cst.CSTNode]) -> Iterator[str]:
    for node in names.descend(nodes):
        path = names.dotted(node) if isinstance(node, cst.Attribute) else None
        if path and path.startswith("self."):
            yield path.split(".")[1]
