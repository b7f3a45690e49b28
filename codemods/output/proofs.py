"""A proof's row for people and for scripts."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from codemods.output.table import printable
from codemods.prove.proof import Proof, ProofStatus

_NAME, _STATUS = 13, 8  # columns
_COUNTED = (ProofStatus.PASS, ProofStatus.SKIPPED, ProofStatus.FAIL)


def proof_lines(proof: Proof, *, width: int | None = None, verbose: bool = False) -> str:
    """The row, its detail folded to `width` columns; the figures too where `verbose`."""
    head = f"{proof.name:{_NAME}}{proof.status.value:{_STATUS}}"
    lines = _folded(head, printable(proof.detail), width)
    if verbose and proof.figures:
        figures = ", ".join(f"{key} {value}" for key, value in proof.figures.items())
        lines += _folded(" " * len(head), printable(figures), width)
    return "\n".join(lines) + "\n"


def proof_count(proofs: Sequence[Proof], *, strict: bool = False) -> str:
    """The last line: how many rows ended how, and whether skipped ones make `strict` fail."""
    found = Counter(proof.status for proof in proofs)
    each = ", ".join(f"{found[status]} {status.value}" for status in _COUNTED)
    line = f"{len(proofs)} row{'' if len(proofs) == 1 else 's'}: {each}"
    if strict and found[ProofStatus.SKIPPED]:
        line += "; with --strict a skipped row fails"
    return line + "\n"


def how_to_install(proofs: Sequence[Proof]) -> str | None:
    """One line on how to get the packages that rows were skipped for; None where there are none."""
    if not any(proof.lacks_a_package for proof in proofs):
        return None
    return (
        "for the packages that are not installed, install this tool with its extra `verify`: "
        "pip install '.[verify]' in a clone of it, else pip install 'vllm-codemods[verify]'"
    )


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
