"""A checkout and a recipe make a plan."""

from __future__ import annotations

from codemods.checkout import Checkout
from codemods.outcome import EditName, Plan, Verdict, verdict_of
from codemods.slot_mapping import recipe


def make_plan(
    checkout: Checkout,
    *,
    only: frozenset[EditName] = frozenset(),
    skip: frozenset[EditName] = frozenset(),
) -> Plan:
    """Decide every edit of the recipe that `only` and `skip` leave; nothing is written.

    A plan that refuses anything holds no changes.
    """
    wanted = (only or frozenset(EditName)) - skip
    result = recipe.run(checkout, wanted)
    verdict = verdict_of(result.outcomes)
    changes = result.changes() if verdict is not Verdict.REFUSED else ()
    return Plan(checkout.tree, tuple(result.outcomes), changes, verdict)
