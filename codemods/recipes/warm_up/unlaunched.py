"""Refuses a tree that defines a kernel of the known name, where the tool finds no launch of it."""

from __future__ import annotations

from codemods.engine.checkout import Checkout, UnreadableFile
from codemods.engine.classes import Lineage
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal
from codemods.transforms import names
from codemods.transforms.statements import line_of


def refuse_two_classes(owner: Lineage | None) -> None:
    """Refuse a module in which an `if` decides which of two classes has the name."""
    if owner is None:
        return
    module = owner.own.file.module
    same = [one for one in names.classes(module) if one.name.value == owner.own.name]
    if len(same) > 1:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"{owner.own.name} is defined more than once, and each may launch another kernel",
            owner.own.file.name,
            line_of(module, same[1]),
        )


def refuse_kernel_elsewhere(checkout: Checkout, folder: str, kernel: str, method: str) -> None:
    """Refuse where a file of `folder` defines `kernel`, and nothing in `method` launches it."""
    for relative in checkout.python_files(folder):
        try:
            data = checkout.read(relative) or b""
        except UnreadableFile:
            continue
        place = data.find(f"def {kernel}(".encode())
        if place >= 0:
            raise Refusal(
                Reason.NOT_LAUNCHED,
                f"{kernel} is defined, but the tool found no launch of it in {method}: look at "
                "what runs in its place",
                checkout.name(relative),
                data.count(b"\n", 0, place) + 1,
            )
