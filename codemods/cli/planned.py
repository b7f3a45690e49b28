"""From the command line's options to a plan."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from codemods.engine import registry
from codemods.engine.checkout import AmbiguousPackage, Checkout, NoPackage, UsageError
from codemods.engine.plan import Plan, Reason, RecipePlan, Tree
from codemods.engine.planning import make_plan, refused_plan, wanted
from codemods.engine.recipe import Recipe


class Planned(NamedTuple):
    """A plan and the checkout that it was made from."""

    plan: Plan
    checkout: Checkout


class Asked(NamedTuple):
    """What the options ask to be decided."""

    recipes: tuple[Recipe, ...]
    only: frozenset[str]
    skip: frozenset[str]
    replace_known: bool
    package: str | None

    @classmethod
    def by(cls, options: argparse.Namespace) -> Asked:
        """Raises UsageError."""
        if options.tree is not None and options.release is not None:
            raise UsageError("name a TREE or a --release, not both")
        with _no_collection():
            recipes = registry.chosen(options.recipe)
        only, skip = frozenset(options.only), frozenset(options.skip)
        _check_edits(recipes, only, skip)
        return cls(recipes, only, skip, options.replace, options.package)

    def decide(self, checkout: Checkout) -> Planned:
        """Decide every edit in a checkout."""
        with _no_collection():
            plan = make_plan(
                checkout,
                self.recipes,
                only=self.only,
                skip=self.skip,
                replace_known=self.replace_known,
            )
        parts = [
            replace(part, options=self._options(recipe, part))
            for recipe, part in zip(self.recipes, plan.recipes, strict=True)
        ]
        return Planned(replace(plan, recipes=tuple(parts)), checkout)

    def _options(self, recipe: Recipe, part: RecipePlan) -> tuple[str, ...]:
        """The options that decided the recipe's part, as the command line takes them."""
        option = "--only" if self.only else "--skip"
        named = [edit for edit in recipe.edits if (edit in part.left_out) is not bool(self.only)]
        edits = [word for edit in named for word in (option, edit)]
        replaced = any(outcome.reason is Reason.REPLACED for outcome in part.outcomes)
        package = ["--package", self.package] if self.package else []
        return (*edits, *(["--replace"] if replaced else []), *package)

    def refuse(self, tree: Tree, reason: Reason, detail: str) -> Planned:
        """Refuse every edit in a tree of which the package is not known."""
        plan = refused_plan(tree, self.recipes, reason, detail, only=self.only, skip=self.skip)
        return Planned(plan, Checkout(tree.root, tree.package))


def planned(options: argparse.Namespace) -> Planned:
    """Find the package in TREE or a release and decide every edit; raises UsageError."""
    asked = Asked.by(options)
    root = _release(options.release) if options.release else Path(options.tree or ".")
    try:
        checkout = Checkout.find(root, asked.package)
    except NoPackage as error:
        from codemods.engine.elsewhere import kernels_elsewhere

        elsewhere = kernels_elsewhere(root, asked.recipes)
        raise UsageError(f"{error}; {elsewhere}" if elsewhere else str(error)) from None
    except AmbiguousPackage as error:
        return asked.refuse(Tree(root, "."), Reason.AMBIGUOUS, str(error))
    return asked.decide(checkout)


def _check_edits(recipes: tuple[Recipe, ...], only: frozenset[str], skip: frozenset[str]) -> None:
    known = dict.fromkeys(edit for recipe in recipes for edit in recipe.edits)
    unknown = sorted((only | skip) - known.keys())
    if unknown:
        raise UsageError(f"there is no edit {unknown[0]}; the edits are {', '.join(known)}")
    if not any(wanted(recipe, only, skip) for recipe in recipes):
        raise UsageError("--only and --skip leave no edit to make")


def _release(version: str) -> Path:
    from codemods.release import ReleaseError, fetch

    try:
        return fetch(version)
    except ReleaseError as error:
        raise UsageError(str(error)) from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the collector: modules and trees only grow meanwhile, and it visits each again.

    Nor need it look at them later: they stay, and at the end it would visit them all.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
