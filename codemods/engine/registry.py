"""Finds the recipes: every folder of `codemods/recipes` that has a `recipe.py`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from codemods.engine.recipe import Recipe

DEFAULT = "slot-mapping"
_FOLDER = Path(__file__).resolve().parents[1] / "recipes"


@cache
def names() -> tuple[str, ...]:
    """Every recipe's name, sorted; the one that runs by default comes first."""
    found = sorted(path.parent.name.replace("_", "-") for path in _FOLDER.glob("*/recipe.py"))
    return tuple(sorted(found, key=lambda name: name != DEFAULT))


def get(name: str) -> Recipe:
    """The recipe of that name. Raises KeyError where there is none."""
    recipe = _module(name, "recipe").RECIPE
    assert isinstance(recipe, Recipe)
    return recipe


def every() -> tuple[Recipe, ...]:
    return tuple(map(get, names()))


def chosen(wanted: Iterable[str]) -> tuple[Recipe, ...]:
    """The recipes of these names in the order they run; "all" means each, none the default."""
    asked = set(wanted) or {DEFAULT}
    return tuple(get(name) for name in names() if name in asked or "all" in asked)


def proofs_of(name: str) -> ModuleType | None:
    """The recipe's `proofs` package, whose `PROOFS` lists them; None where it has none."""
    if not (_FOLDER / name.replace("-", "_") / "proofs" / "__init__.py").is_file():
        return None
    return _module(name, "proofs")


def _module(name: str, part: str) -> ModuleType:
    if name not in names():
        raise KeyError(name)
    return importlib.import_module(f"codemods.recipes.{name.replace('-', '_')}.{part}")
