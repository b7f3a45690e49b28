"""What the runner passes is read from the runner."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codemods.recipes.slot_mapping.proofs.call_site import DOCUMENTED, CallSite, Passed, call_sites
from codemods.recipes.slot_mapping.proofs.modules import MODEL_RUNNER
from tests.recipes.slot_mapping.sides import side

MADE = """
    self.positions = torch.zeros(self.limit, dtype=torch.int64, device=self.device)
    self.query_start_loc = self._make_buffer(self.rows + 1, dtype=torch.int32)
"""


def sites(root: Path, call: str, made: str = MADE) -> tuple[CallSite, ...]:
    init = textwrap.indent(f"def __init__(self):{made}", "    ")
    step = textwrap.indent(f"def step(self, n):\n    {call}\n", "    ")
    return call_sites(side(root, gpu_model_runner=f"class Runner:\n{init}\n{step}"))


def test_views_from_the_start_of_the_runners_buffers_are_read(tmp_path: Path) -> None:
    call = "self.t.compute_slot_mapping(n, self.query_start_loc.gpu[: n + 1], self.positions[:n])"
    assert sites(tmp_path, call) == (CallSite(Passed("int32"), Passed("int64"), 7),)


def test_keywords_and_local_names_are_read(tmp_path: Path) -> None:
    call = (
        "where = self.positions[:n]\n    self.t.compute_slot_mapping("
        "n, positions=where, query_start_loc=self.query_start_loc.gpu)"
    )
    assert sites(tmp_path, call)[0].positions == Passed("int64")


@pytest.mark.parametrize(("view", "offset"), [("[4:n]", 4), ("[n:]", None), ("[0:n]", 0)])
def test_a_view_that_starts_later_is_not_taken_for_an_aligned_one(
    tmp_path: Path, view: str, offset: int | None
) -> None:
    call = f"self.t.compute_slot_mapping(n, self.query_start_loc.gpu, self.positions{view})"
    assert sites(tmp_path, call)[0].positions == Passed("int64", offset)


def test_another_dtype_is_taken_as_it_is(tmp_path: Path) -> None:
    call = "self.t.compute_slot_mapping(n, self.query_start_loc.gpu, self.positions[:n])"
    made = MADE.replace("torch.int64", "torch.int32")
    assert sites(tmp_path, call, made)[0].positions == Passed("int32")


def test_a_call_that_cannot_be_read_leaves_the_documented_shape(tmp_path: Path) -> None:
    assert sites(tmp_path, "self.t.compute_slot_mapping(n, *self.arguments())") == (DOCUMENTED,)


def test_a_tree_without_a_runner_leaves_the_documented_shape(tmp_path: Path) -> None:
    assert call_sites(side(tmp_path)) == (DOCUMENTED,)
    assert not (tmp_path / "vllm" / MODEL_RUNNER).exists()
