"""Recipes are found by listing their folder, and run in one order."""

from __future__ import annotations

from pathlib import Path

import pytest

import codemods.recipes
from codemods.engine import registry

FOLDER = Path(codemods.recipes.__file__).parent


def test_every_folder_with_a_recipe_is_one() -> None:
    found = {
        path.name.replace("_", "-") for path in FOLDER.iterdir() if (path / "recipe.py").exists()
    }
    assert set(registry.names()) == found
    assert registry.names()[0] == registry.DEFAULT


@pytest.mark.parametrize("name", registry.names())
def test_a_recipe_is_called_as_its_folder_is_and_holds_together(name: str) -> None:
    recipe = registry.get(name)
    assert recipe.name == name
    assert sorted(recipe.edits) == sorted(recipe.writes)
    assert len(set(recipe.edits)) == len(recipe.edits)
    assert (FOLDER / name.replace("-", "_") / "README.md").exists()


@pytest.mark.parametrize("name", ["warm-up", "slot_mapping", "", "..", "none"])
def test_what_is_no_recipe_is_not_found(name: str) -> None:
    with pytest.raises(KeyError):
        registry.get(name)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ((), registry.names()[:1]),
        (("all",), registry.names()),
        ((registry.names()[-1],), registry.names()[-1:]),
        (registry.names()[::-1], registry.names()),
        ((registry.DEFAULT, "all", registry.DEFAULT), registry.names()),
    ],
)
def test_the_chosen_ones_run_once_and_in_one_order(
    wanted: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert tuple(recipe.name for recipe in registry.chosen(wanted)) == names


@pytest.mark.parametrize("name", registry.names())
def test_a_recipes_proofs_have_names_of_their_own(name: str) -> None:
    module = registry.proofs_of(name)
    names = [row.name for row in module.PROOFS] if module else []
    assert len(set(names)) == len(names)
    assert not {"syntax", "lint", "mypy"} & set(names)
