"""Which proofs are asked for, and of what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Verdict
from codemods.prove import rows
from codemods.prove.proof import Options
from tests.plans import plan_of
from tests.recipes.slot_mapping.rewritten import plan


def asked(root: Path, options: Options) -> list[tuple[str | None, str]]:
    made = plan(root)
    return [
        (subject.recipe.recipe if subject.recipe else None, row.name)
        for subject, row in rows.rows(made, Checkout(root, "vllm"), options)
    ]


def test_those_of_every_plan_come_first_and_the_recipes_own_in_their_order(
    tmp_path: Path,
) -> None:
    module = registry.proofs_of("slot-mapping")
    assert module is not None
    own = [row.name for row in module.PROOFS]
    every = [(None, name) for name in ("syntax", "imports", "lint", "mypy")]
    found = asked(tmp_path, Options(mypy=True, gpu=True))
    assert found == every + [("slot-mapping", name) for name in own]


def test_what_is_not_asked_for_does_not_run(tmp_path: Path) -> None:
    names = [name for _, name in asked(tmp_path, Options())]
    assert names == ["syntax", "imports", "lint", "order", "keys", "compile", "result", "state"]


def test_a_fix_that_is_taken_out_is_proved_as_every_plan_is(tmp_path: Path) -> None:
    one = replace(plan(tmp_path).recipes[0], verdict=Verdict.SUPERSEDED)
    made = replace(plan_of(), recipes=(one,))
    found = [row.name for _, row in rows.rows(made, Checkout(tmp_path, "vllm"), Options())]
    assert found == ["syntax", "imports", "lint"]


def test_a_recipe_without_proofs_of_its_own_has_those_of_every_plan(tmp_path: Path) -> None:
    made = plan_of()
    assert registry.names()  # none of them is called as the plan's recipe is
    found = [row.name for _, row in rows.rows(made, Checkout(tmp_path, "vllm"), Options())]
    assert found == ["syntax", "imports", "lint"]
