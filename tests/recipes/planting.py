"""Planting: a tree as a recipe rewrites it, with one thing changed, as the proofs are given it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from codemods import release
from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import FileChange, Plan
from codemods.engine.planning import make_plan
from codemods.prove.subject import Subject

# A file's path in the package, the edit that it belongs to, and what its text becomes.
Spoil = tuple[str, str, Callable[[str], str]]


def release_tree(version: str) -> Path:
    try:
        return release.fetch(version)
    except release.UnreachableError as error:
        pytest.skip(f"no package index: {error}")


def spoiled(recipe: str, checkout: Checkout, spoils: Iterable[Spoil]) -> Subject:
    """The tree as the recipe rewrites it and the spoils change it."""
    plan = _rewrite(recipe, checkout.root)
    made = {change.path: change for change in plan.changes}
    for relative, edit, spoil in spoils:
        path = checkout.name(relative)
        change = made.get(path) or _unchanged(checkout, path, edit)
        after = spoil(change.after.decode().replace("\r\n", "\n"))
        made[path] = replace(change, after=after.encode())
    (whole,) = plan.recipes
    changed = replace(whole, changes=tuple(made.values()))
    return Subject(Plan(plan.tree, (changed,)), checkout, changed)


@cache
def _rewrite(recipe: str, root: Path) -> Plan:
    return make_plan(Checkout.find(root), [registry.get(recipe)])


def _unchanged(checkout: Checkout, path: str, edit: str) -> FileChange:
    source = checkout.read_named(path)
    return FileChange(path, source, source, (edit,))


def replaced(text: str, change: dict[str, str]) -> str:
    """The text with `new` in place of `old`, or of the first match of `find`."""
    if "old" in change:
        assert text.count(change["old"]) == 1, f"{change['old']!r}: {text.count(change['old'])}"
        return text.replace(change["old"], change["new"])
    return substituted(text, re.compile(change["find"], re.MULTILINE), change["new"])


def substituted(text: str, pattern: re.Pattern[str], new: str) -> str:
    assert pattern.search(text), f"no {pattern.pattern!r}"
    return pattern.sub(lambda found: found.expand(new) if "\\" in new else new, text, count=1)
