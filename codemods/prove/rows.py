"""Proofs that a rewrite is right, a row each.

`syntax`, `imports`, `lint` and `mypy` are of every plan; the rest are the recipes' own. Some run
code of the tree, in a process of its own with a time limit (`runner`).
"""

from __future__ import annotations

from collections.abc import Iterator

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Verdict
from codemods.prove import imports, lint, mypy, syntax
from codemods.prove.proof import Options, Proof, Row
from codemods.prove.subject import Subject

OF_EVERY_PLAN = (
    Row("syntax", syntax.prove),
    Row("imports", imports.prove),
    Row("lint", lint.prove),
    Row("mypy", mypy.prove, asked_by="mypy"),
)


def rows(plan: Plan, checkout: Checkout, options: Options) -> Iterator[tuple[Subject, Row]]:
    """Each proof that the options ask for, with what it is proved of, in order."""
    asked = {name for name in ("mypy", "gpu") if getattr(options, name)}
    subjects: list[tuple[Subject, tuple[Row, ...]]] = [(Subject(plan, checkout), OF_EVERY_PLAN)]
    for one in plan.recipes:
        if one.verdict in (Verdict.SUPERSEDED, Verdict.NOT_AFFECTED):
            continue  # what a recipe's proofs are of is not there, or is taken out
        module = registry.proofs_of(one.recipe)
        subjects.append((Subject(plan, checkout, one), module.PROOFS if module else ()))
    for subject, listed in subjects:
        for row in listed:
            if row.asked_by is None or row.asked_by in asked:
                yield subject, row


def prove(plan: Plan, checkout: Checkout, options: Options) -> Iterator[tuple[Subject, Proof]]:
    """Prove the plan's rewrite, or the tree as it is when there is nothing to change."""
    for subject, row in rows(plan, checkout, options):
        yield subject, row.prove(subject, options)
