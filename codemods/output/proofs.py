"""A proof's row for people and for scripts."""

from __future__ import annotations

import textwrap
from typing import Any

from codemods.output.table import printable
from codemods.prove.proof import Proof

_NAME, _STATUS = 13, 8  # columns


def proof_lines(proof: Proof, *, width: int | None = None, verbose: bool = False) -> str:
    """The row, its detail folded to `width` columns; the figures too where `verbose`."""
    head = f"{proof.name:{_NAME}}{proof.status.value:{_STATUS}}"
    lines = _folded(head, printable(proof.detail), width)
    if verbose and proof.figures:
        figures = ", ".join(f"{key} {value}" for key, value in proof.figures.items())
        lines += _folded(" " * len(head), printable(figures), width)
    return "\n".join(lines) + "\n"


def proof_document(recipe: str | None, proof: Proof) -> dict[str, Any]:
    """The row as JSON has it; `recipe` is None for a proof of the whole plan."""
    return {
        "recipe": recipe,
        "proof": proof.name,
        "status": proof.status.value,
        "detail": proof.detail,
        "figures": dict(proof.figures),
    }


def _folded(head: str, text: str, width: int | None) -> list[str]:
    if width is None:
        return [f"{head}{text}".rstrip()]
    return textwrap.wrap(
        text, max(width, 40), initial_indent=head, subsequent_indent=" " * len(head)
    )
