"""The runner's block tables: what the warm-up calls on them, and whether they take it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from codemods.engine.classes import Lineage, lineage
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.facts.names import BLOCK_TABLE, BLOCK_TABLE_CLASS, METHOD
from codemods.transforms import names
from codemods.transforms.statements import line_of

TABLES_CLASS = "MultiGroupBlockTable"

# What the function calls on the tables, and the arguments in the order in which it gives them.
_CALLS = {
    "add_row": ("block_ids", "row_idx"),
    "clear_row": ("row_idx",),
    "commit_block_table": ("num_reqs",),
    METHOD: ("num_reqs", "query_start_loc", "positions"),
}


@dataclass(frozen=True)
class Tables:
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


def check_interface(tables: Tables) -> None:
    """Refuse a tree whose block tables lack what the function calls."""
    groups, one = _there(tables, TABLES_CLASS), _there(tables, BLOCK_TABLE_CLASS)
    for name, given in _CALLS.items():
        owner, found = next(groups.methods(name), (groups.own, None))
        if found is None or not _takes(found, given):
            module = owner.file.module
            there = module.code_for_node(found.params) if found else "no such method"
            raise Refusal(
                Reason.SIGNATURE_CHANGED,
                f"expected {TABLES_CLASS}.{name} to take ({', '.join(given)}), found "
                f"({there}); the warm-up has to be written for this tree, --skip warmup "
                "--skip worker takes the rest",
                owner.file.name,
                line_of(module, found or owner.node),
            )
    for classes, attribute, wrong in (
        (groups, "block_tables", _MAPPINGS),
        (one, "num_blocks_per_row", (*_MAPPINGS, *_LISTS)),
    ):
        if any(isinstance(value, wrong) for value in _assigned(classes, f"self.{attribute}")):
            raise Refusal(
                Reason.SIGNATURE_CHANGED,
                f"{classes.own.name}.{attribute} is of another type than upstream's; the warm-up "
                "has to be written for this tree, --skip warmup --skip worker takes the rest",
                classes.own.file.name,
                line_of(classes.own.file.module, classes.own.node),
            )
        if not _mentions(classes, f"self.{attribute}"):
            raise Refusal(
                Reason.SIGNATURE_CHANGED,
                f"expected {classes.own.name} to have {attribute}, found none",
                classes.own.file.name,
                line_of(classes.own.file.module, classes.own.node),
            )


def _there(tables: Tables, name: str) -> Lineage:
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


def commit_passes_over(tables: Tables) -> bool:
    """Whether commit_block_table picks rows by a mark that clear_row does not set."""
    if tables.one is None:
        return False
    _, commit = next(tables.one.methods("commit_block_table"), (None, None))
    _, clear = next(tables.one.methods("clear_row"), (None, None))
    if commit is None or clear is None:
        return False
    marks = _own_attributes(commit) - {"block_table", "num_blocks_per_row", "max_num_reqs"}
    return bool(marks) and not marks & _own_attributes(clear)


def _own_attributes(method: cst.FunctionDef) -> set[str]:
    paths = (
        names.dotted(node) for node in names.descend(method.body) if isinstance(node, cst.Attribute)
    )
    return {path.split(".")[1] for path in paths if path and path.startswith("self.")}
