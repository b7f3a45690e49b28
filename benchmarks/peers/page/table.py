"""What every part of the page is made of: tables, and a line about how it was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

OURS = "vllm-codemods"
Data = dict[str, Any]


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def bold(name: str) -> str:
    return f"**{name}**" if name.startswith(OURS) else name


def about(part: Data) -> str:
    where = part["about"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"Measured by `{part['command']}` on {where['date']}, commit `{where['commit']}`, on "
        f"{where['cores']} cores ({where['cpu']}), with Python {where['python']}; {versions}.\n"
    )
