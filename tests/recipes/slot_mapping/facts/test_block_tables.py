"""What the warm-up calls on the block tables, and which tables take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.facts.block_tables import (
    Tables,
    check_interface,
    marks_rows,
)
from tests.forks.trees import BLOCK_TABLE, fork

TABLE = fork("00-no-monitor").tree.inside[BLOCK_TABLE].decode()


def tables_of(table: str) -> Tables:
    sources = Sources(Checkout(Path("nowhere"), "vllm"))
    return Tables.of(sources, SourceFile("vllm/v1/worker/block_table.py", table.encode()))


def refusal(table: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        check_interface(tables_of(table))
    return caught.value


def test_upstreams_own_tables_are_taken() -> None:
    check_interface(tables_of(TABLE))


SIGNATURES = [
    ("add_row", "self, block_ids: tuple[list[int], ...], row_idx: int", "self, block_ids"),
    ("add_row", "self, block_ids: tuple[list[int], ...], row_idx: int", "self, row_idx, block_ids"),
    ("add_row", "self, block_ids: tuple[list[int], ...], row_idx: int", "self, a, b, c"),
    ("add_row", "self, block_ids: tuple[list[int], ...], row_idx: int", "self, a, b, *, c"),
    ("add_row", "self, block_ids: tuple[list[int], ...], row_idx: int", "self, *, a, b"),
]


@pytest.mark.parametrize(("method", "old", "new"), SIGNATURES)
def test_a_signature_that_the_call_does_not_fit_is_refused(method: str, old: str, new: str) -> None:
    assert TABLE.count(f"def {method}({old})") == 1
    one = refusal(TABLE.replace(f"def {method}({old})", f"def {method}({new})"))
    assert one.reason is Reason.SIGNATURE_CHANGED
    assert f"MultiGroupBlockTable.{method}" in one.detail
    assert "--skip warmup" in one.detail


@pytest.mark.parametrize(
    "new",
    [
        "self, block_ids, row_idx",
        "self, block_ids, row_idx, force=False",
        "self, block_ids, row_idx, *, force=False",
        "self, ids, row",
        "self, *arguments",
        "self, block_ids, /, row_idx",
    ],
)
def test_a_signature_that_the_call_fits_is_taken(new: str) -> None:
    old = "self, block_ids: tuple[list[int], ...], row_idx: int"
    table = TABLE.replace(f"def add_row({old})", f"def add_row({new})")
    assert table != TABLE
    check_interface(tables_of(table))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class MultiGroupBlockTable", "class Tables"),
        ("self.num_blocks_per_row", "self.counts"),
        ("self.block_tables", "self.tables"),
    ],
)
def test_tables_without_what_the_function_reads_are_refused(old: str, new: str) -> None:
    assert refusal(TABLE.replace(old, new)).reason is Reason.SIGNATURE_CHANGED


@pytest.mark.parametrize("method", ["add_row", "commit_block_table", "compute_slot_mapping"])
def test_tables_without_a_method_are_refused(method: str) -> None:
    head, tables = TABLE.split("class MultiGroupBlockTable")
    table = f"{head}class MultiGroupBlockTable{tables.replace(f'def {method}', 'def other')}"
    one = refusal(table)
    assert one.reason is Reason.SIGNATURE_CHANGED
    assert method in one.detail


def test_an_inherited_method_is_enough() -> None:
    head, tables = TABLE.split("class MultiGroupBlockTable:")
    base, rest = tables.split("    def clear_row", 1)
    clear, more = rest.split("\n    def ", 1)
    table = (
        f"{head}class Base:\n    def clear_row{clear}\n\n\n"
        f"class MultiGroupBlockTable(Base):{base}    def {more}"
    )
    check_interface(tables_of(table))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("np.zeros(max_num_reqs, dtype=np.int32)", "[0] * max_num_reqs"),
        ("np.zeros(max_num_reqs, dtype=np.int32)", "[0 for _ in range(max_num_reqs)]"),
        ("[BlockTable(size, *sizes, device) for size in block_sizes]", "{0: BlockTable(1)}"),
    ],
)
def test_tables_of_other_types_are_refused(old: str, new: str) -> None:
    assert TABLE.count(old) == 1
    one = refusal(TABLE.replace(old, new))
    assert one.reason is Reason.SIGNATURE_CHANGED
    assert "of another type" in one.detail


def test_only_a_mark_that_clearing_does_not_set_passes_rows_over() -> None:
    marked = fork("15-rows-marked-dirty").tree.inside[BLOCK_TABLE].decode()
    assert not marks_rows(tables_of(marked))
    forgets = marked.replace("[row_idx] = 0\n        self.dirty.add(row_idx)\n", "[row_idx] = 0\n")
    assert forgets != marked
    assert marks_rows(tables_of(forgets))
    assert not marks_rows(tables_of(TABLE))
    assert not marks_rows(tables_of("class Other: ...\n"))
