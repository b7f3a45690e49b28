"""The list of Triton's names has those of the Triton that is installed."""

from __future__ import annotations

import pytest

from codemods.recipes.slot_mapping.facts.triton_language import NAMES


def test_every_name_of_the_installed_triton_is_listed() -> None:
    language = pytest.importorskip("triton.language")
    assert {name for name in dir(language) if not name.startswith("_")} <= NAMES


def test_a_made_up_name_is_not_listed() -> None:
    assert not NAMES & {"program_number", "", "tl"}
