"""What a version of this tool inserted for the recipe is known to the letter.

Where this fails, a text of an edit has changed: what it was belongs in past_texts, and what it is
now here, under the new version's number.
"""

from __future__ import annotations

import pytest

from codemods.recipes.slot_mapping.facts.past_texts import PAST
from tests.recipes.warm_up import leftovers

RECIPE = "slot-mapping"


@pytest.mark.parametrize("text", leftovers.texts(RECIPE))
def test_a_version_s_text_is_known(text: str) -> None:
    assert leftovers.is_known(PAST, RECIPE, text)
