"""Refuses a tree in which the tool finds no launched kernel and cannot show that there is none."""

from __future__ import annotations

from codemods.engine.classes import Lineage
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.facts.names import (
    BLOCK_TABLE,
    BLOCK_TABLE_CLASS,
    KERNEL,
    METHOD,
    PARAMETER,
)
from codemods.recipes.warm_up.launches import Launches, jitted_functions
from codemods.recipes.warm_up.unlaunched import refuse_kernel_elsewhere
from codemods.transforms import names
from codemods.transforms.jit import parameters
from codemods.transforms.statements import line_of


def refuse(launches: Launches, block_table: SourceFile, sources: Sources) -> None:
    """Refuse where what is seen does not show that no kernel is launched."""
    tables = launches.owner
    if tables is not None:
        _refuse_unseen_launch(launches, tables, block_table)
    elif _may_use_triton(sources, block_table):
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"expected a class {BLOCK_TABLE_CLASS}, found none, nor an import that leads to one "
            "in this package",
            block_table.name,
        )
    refuse_kernel_elsewhere(
        sources.checkout,
        BLOCK_TABLE.rpartition("/")[0],
        KERNEL,
        f"{BLOCK_TABLE_CLASS}.{METHOD}",
    )


def _may_use_triton(sources: Sources, file: SourceFile) -> bool:
    """Whether a module without the class has it from elsewhere, or Triton, it or what it imports.

    The files of another framework, or patches for one, may be at the same path.
    """
    bound = {name for node in names.descend(file.module) for name in names.bound_by(node)}
    if names.star_imports(file.module) or BLOCK_TABLE_CLASS in bound:
        return True
    modules = (sources.module(file, one.module) for one in names.imports(file.module))
    return any(b"triton" in one.data for one in (file, *filter(None, modules)))


def _refuse_unseen_launch(launches: Launches, tables: Lineage, block_table: SourceFile) -> None:
    files = {file.name: file for file in (block_table, *(one.file for one in tables.classes))}
    for file in files.values():
        for function in jitted_functions(file):
            if PARAMETER in {p.name.value for p in parameters(function)}:
                raise Refusal(
                    Reason.NOT_LAUNCHED,
                    f"{function.name.value} is defined, but BlockTable.compute_slot_mapping does "
                    "not launch it: look at what runs in its place",
                    file.name,
                    line_of(file.module, function),
                )
    if launches.unresolved and launches.method:
        owner, method = launches.method
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"BlockTable.compute_slot_mapping launches {launches.unresolved[0]}, "
            "which is no Triton kernel that the tool found in this package",
            owner.file.name,
            line_of(owner.file.module, method),
        )
    if tables.unknown and (launches.method is None or launches.calls_super):
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"{BLOCK_TABLE_CLASS} may have compute_slot_mapping from {tables.unknown[0]}, "
            "which is not defined in this package",
            tables.own.file.name,
            line_of(tables.own.file.module, tables.own.node),
        )
