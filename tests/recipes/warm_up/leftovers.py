"""What each version of this tool inserted, under fixtures/leftovers."""

from __future__ import annotations

import re
from pathlib import Path

from codemods.recipes.warm_up.removal import Past
from codemods.transforms import known_text

FOLDER = Path(__file__).parents[3] / "fixtures" / "leftovers"


def texts(recipe: str) -> list[str]:
    """The names of a recipe's texts: EDIT-VERSION.txt, with what is special about it between."""
    return sorted(path.name for path in (FOLDER / recipe).glob("*.txt"))


def is_known(past: Past, recipe: str, name: str) -> bool:
    """Whether the text goes without a rest from where its edit puts it."""
    text = (FOLDER / recipe / name).read_text("utf-8")
    edit = next(one for one in ("warmup", "worker", "unit-tests") if name.startswith(one))
    before, gap = ("a = 1\n", "\n\n")
    if edit == "worker":
        before, gap = ("if a:\n    b = 1\n", "\n")
        text = re.sub("(?m)^(?=.)", "    ", text)
    code = before + gap + text
    for known in past.known(edit):
        code = known_text.without(code, "    ", known)
    return code == before
