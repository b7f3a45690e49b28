"""What the runner passes is read from the runner."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codemods.engine.plan import Plan, Tree, Verdict
from codemods.prove.subject import MODEL_RUNNER, Side, import_name, table_modules
from codemods.recipes.slot_mapping.proofs.call_site import DOCUMENTED, CallSite, Passed, call_sites

MADE = """
    self.positions = torch.zeros(self.limit, dtype=torch.int64, device=self.device)
    self.query_start_loc = self._make_buffer(self.rows + 1, dtype=torch.int32)
"""


def side(root: Path, **files: str) -> Side:
    for name, text in files.items():
        path = root / "vllm/v1/worker" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Side(Plan(Tree(root, "vllm"), (), (), Verdict.ALREADY_FIXED), after=True)


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


def test_the_import_name_is_the_one_the_tree_uses(tmp_path: Path) -> None:
    text = "from third_party.acme.triton_utils import tl, triton\n"
    assert import_name(side(tmp_path, block_table=text)) == "third_party.acme"


def test_a_relative_import_leaves_the_folders_name(tmp_path: Path) -> None:
    text = "from ...triton_utils import tl, triton\n"
    assert import_name(side(tmp_path, block_table=text)) == "vllm"


@pytest.mark.parametrize(
    "line",
    ["from vllm.v1.worker.slots import kernel", "from .slots import kernel", "from . import slots"],
)
def test_a_module_that_the_kernel_comes_from_is_the_trees_own(tmp_path: Path, line: str) -> None:
    kernels = "@triton.jit\ndef kernel(num_tokens): ...\n"
    found = table_modules(side(tmp_path, block_table=f"{line}\n", slots=kernels), "vllm")
    assert found == {"vllm.v1.worker.slots": "v1/worker/slots.py"}


def test_modules_that_the_tables_and_their_bases_come_from_are_the_trees_own(
    tmp_path: Path,
) -> None:
    made = side(
        tmp_path,
        block_table="from .tables import BlockTable\nfrom .more import *\n",
        tables="from .rows import Rows, clear\nclass BlockTable(Rows): ...\n",
        rows="from . import deeper\nfrom .other import Other\nclass Rows(deeper.Rows[int]): ...\n",
        deeper="class Rows: ...\n",
        other="class Other: ...\n",
        more="from .groups import MultiGroupBlockTable\n",
        groups="class MultiGroupBlockTable: ...\n",
    )
    assert sorted(table_modules(made, "vllm")) == [
        f"vllm.v1.worker.{name}" for name in ("deeper", "groups", "more", "rows", "tables")
    ]


def test_modules_that_import_each_other_end(tmp_path: Path) -> None:
    made = side(
        tmp_path,
        block_table="from .tables import BlockTable\n",
        tables="from .block_table import BlockTable\nclass BlockTable(BlockTable): ...\n",
    )
    assert list(table_modules(made, "vllm")) == ["vllm.v1.worker.tables"]


def test_a_module_without_kernels_is_not(tmp_path: Path) -> None:
    text = "from .rows import clear\n"
    assert table_modules(side(tmp_path, block_table=text, rows="def clear(): ...\n"), "vllm") == {}
