"""Refuses a tree in which nothing shows which kernel is launched, or that none is."""

from __future__ import annotations

from codemods.engine.checkout import Checkout, UnreadableFile
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile
from codemods.recipes.slot_mapping.facts.names import BLOCK_TABLE, BLOCK_TABLE_CLASS, PARAMETER
from codemods.recipes.warm_up.launches import Launches, jitted_functions
from codemods.transforms import names
from codemods.transforms.do_not_specialize import parameters
from codemods.transforms.statements import line_of


def refuse_two_classes(launches: Launches) -> None:
    """Refuse a module in which an `if` decides which of two classes is BlockTable."""
    tables = launches.owner
    if tables is None:
        return
    module = tables.own.file.module
    same = [one for one in names.classes(module) if one.name.value == tables.own.name]
    if len(same) > 1:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"{tables.own.name} is defined more than once, and each may launch another kernel",
            tables.own.file.name,
            line_of(module, same[1]),
        )


def refuse(launches: Launches, block_table: SourceFile, checkout: Checkout) -> None:
    """Refuse where what is seen does not show that no kernel is launched."""
    tables = launches.owner
    if tables is None:
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"expected a class {BLOCK_TABLE_CLASS}, found none, nor an import that leads to one "
            "in this package",
            block_table.name,
        )
    files = {file.name: file for file in (block_table, *(one.file for one in tables.classes))}
    for file in files.values():
        for function in jitted_functions(file):
            if PARAMETER in {p.name.value for p in parameters(function)}:
                raise Refusal(
                    Reason.NOT_LAUNCHED,
                    f"{function.name.value} is defined, but BlockTable.compute_slot_mapping does "
                    "not launch it: what runs in its place has to be looked at by hand",
                    file.name,
                    line_of(file.module, function),
                )
    if launches.unresolved and launches.method:
        owner, method = launches.method
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"BlockTable.compute_slot_mapping launches {launches.unresolved[0]}, "
            "which is no Triton kernel that this package is seen to define",
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
    _refuse_kernel_elsewhere(checkout)


def _refuse_kernel_elsewhere(checkout: Checkout) -> None:
    """Refuse where upstream's kernel stands by its name in a file that no launch leads to."""
    for relative in checkout.python_files(BLOCK_TABLE.rpartition("/")[0]):
        try:
            data = checkout.read(relative) or b""
        except UnreadableFile:
            continue
        place = data.find(b"def _compute_slot_mapping_kernel(")
        if place >= 0:
            raise Refusal(
                Reason.NOT_LAUNCHED,
                "_compute_slot_mapping_kernel is defined, but BlockTable.compute_slot_mapping is "
                "not seen to launch it: what runs in its place has to be looked at by hand",
                checkout.name(relative),
                data.count(b"\n", 0, place) + 1,
            )
