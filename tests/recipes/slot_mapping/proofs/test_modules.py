"""Which modules the proofs load, found without running any."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.recipes.slot_mapping.proofs.modules import ATTENTION, pad_slot_id, table_modules
from tests.recipes.slot_mapping.sides import side


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("PAD_SLOT_ID = -1\n", -1),
        ("import x\nPAD_SLOT_ID = 7\n", 7),
        ("PAD_SLOT_ID = x.PAD\n", -1),
        ("OTHER = 7\n", -1),
        ("def f(:\n", -1),
        (None, -1),
    ],
)
def test_the_padding_slot_is_the_trees_own(text: str | None, number: int, tmp_path: Path) -> None:
    if text is not None:
        path = tmp_path / "vllm" / ATTENTION
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert pad_slot_id(side(tmp_path)) == number
