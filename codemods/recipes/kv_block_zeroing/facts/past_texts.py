"""Every text that a version of this tool inserted for the recipe: today's, and older ones.

Where an edit's text changes, what it was is added here: a test takes out what each version
inserted.
"""

from __future__ import annotations

from codemods.recipes.kv_block_zeroing.edits import unit_tests, warmup
from codemods.recipes.kv_block_zeroing.facts.names import PARAMETER
from codemods.recipes.warm_up.removal import Past, order_test

PAST = Past(
    warmup.CALL,
    forms=[warmup.function_text(["{name}"]), warmup.function_text(["{name}", "{other}"])],
    tests=[*unit_tests.TEXTS, order_test("kv_block_zeroing", warmup.FUNCTION)],
    parameter=PARAMETER,
    parts={"name": r"\w+", "other": r"\w+", "names": r"[^()]*", "kernel": r"\w+"},
)
