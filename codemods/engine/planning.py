"""A checkout and recipes make a plan; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from codemods.engine.checkout import Checkout
from codemods.engine.plan import (
    FileChange,
    Outcome,
    Plan,
    Reason,
    RecipePlan,
    Status,
    Tree,
    Verdict,
    merged,
    verdict_of,
)
from codemods.engine.recipe import Recipe, Run, too_deep_refused
from codemods.engine.sources import Refusal, Sources
from codemods.transforms.source import compiles


def make_plan(
    checkout: Checkout,
    recipes: Sequence[Recipe],
    *,
    only: frozenset[str] = frozenset(),
    skip: frozenset[str] = frozenset(),
    replace_known: bool = False,
) -> Plan:
    """Decide every edit of the recipes that `only` and `skip` leave.

    Each recipe sees the tree as the ones before it leave it. `replace_known` puts a recipe's own
    code in the place of a known other form of it. A recipe that refuses an edit changes nothing.
    """
    plans: list[RecipePlan] = []
    for recipe in recipes:
        made = {change.path: change.after for one in plans for change in one.changes}
        run = Run(
            recipe, Sources(checkout.overlaid(made)), wanted(recipe, only, skip), replace_known
        )
        plans.append(_decided(run))
    return Plan(checkout.tree, tuple(_on_final_lines(plans)))


def refused_plan(
    tree: Tree,
    recipes: Sequence[Recipe],
    reason: Reason,
    detail: str,
    *,
    only: frozenset[str] = frozenset(),
    skip: frozenset[str] = frozenset(),
) -> Plan:
    """A plan that refuses every edit that `only` and `skip` leave, for one reason."""
    plans = [
        RecipePlan(
            recipe.name,
            recipe.about,
            Verdict.REFUSED,
            detail,
            tuple(
                Outcome(edit, Status.REFUSED, reason, detail)
                for edit in recipe.edits
                if edit in wanted(recipe, only, skip)
            ),
            left_out=_left_out(recipe, wanted(recipe, only, skip)),
        )
        for recipe in recipes
    ]
    return Plan(tree, tuple(plans))


def wanted(recipe: Recipe, only: frozenset[str], skip: frozenset[str]) -> frozenset[str]:
    """The recipe's edits that `only` and `skip` leave."""
    return (only & frozenset(recipe.edits) if only else frozenset(recipe.edits)) - skip


def _decided(run: Run) -> RecipePlan:
    try:
        with too_deep_refused(None):
            run.recipe.decide(run)
    except Refusal as refusal:
        run.refuse_the_rest(refusal)
    for change in filter(breaks, run.changes()):
        for edit in change.edits:
            detail = "the rewritten file would not parse"
            run.add(Outcome(edit, Status.REFUSED, Reason.UNPARSABLE, detail, change.path))
    verdict = verdict_of(run.outcomes, run.recipe.means)
    refused = verdict is Verdict.REFUSED
    return RecipePlan(
        run.recipe.name,
        run.recipe.about,
        verdict,
        _first_refusal(run.outcomes) if refused else run.why,
        run.outcomes,
        () if refused else run.changes(),
        left_out=_left_out(run.recipe, run.wanted),
    )


def breaks(change: FileChange) -> bool:
    """Whether a file that the running Python accepts would no longer be accepted."""
    return not compiles(change.after) and compiles(change.before)


def _left_out(recipe: Recipe, asked: frozenset[str]) -> tuple[str, ...]:
    return tuple(edit for edit in recipe.edits if edit not in asked)


def _first_refusal(outcomes: Iterable[Outcome]) -> str:
    return next(one.detail for one in outcomes if one.status is Status.REFUSED)


def _on_final_lines(plans: list[RecipePlan]) -> Iterable[RecipePlan]:
    """The plans with each outcome's line as it is once the later recipes have run too."""
    for index, plan in enumerate(plans):
        later = merged(change for one in plans[index + 1 :] for change in one.changes)
        moved = {change.path: change for change in later}
        outcomes = tuple(
            one.moved(change.before, change.after) if change else one
            for one in plan.outcomes
            for change in (moved.get(one.file or ""),)
        )
        yield replace(plan, outcomes=outcomes)
