"""The warmup edit: what is appended to the worker's warm-up module, and when it is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.edits import warmup
from codemods.recipes.slot_mapping.facts.block_tables import Tables
from codemods.recipes.slot_mapping.facts.reach import FollowedWarmup
from codemods.recipes.slot_mapping.facts.simulated_tables import Classes
from codemods.recipes.warm_up import launches
from tests.forks.trees import BLOCK_TABLE, WARMUP, fork
from tests.rewriting import Rewrite, rewrites

BASE = fork("00-no-monitor").tree.inside
TABLE = BASE[BLOCK_TABLE].decode()
MODULE = BASE[WARMUP].decode()


FILE = "vllm/v1/worker/block_table.py"


def tables_of(table: str = TABLE) -> Tables:
    sources = Sources(Checkout(Path("nowhere"), "vllm"))
    return Tables.of(sources, SourceFile(FILE, table.encode()))


def classes_of(table: str) -> Classes:
    sources = Sources(Checkout(Path("nowhere"), "vllm"))
    file = SourceFile(FILE, table.encode())
    tables = Tables.of(sources, file)
    kernels = launches.find(sources, file, "BlockTable", "compute_slot_mapping").kernels
    assert tables.groups is not None
    assert tables.one is not None
    found = Classes.of(sources, tables.groups, tables.one, kernels)
    assert found is not None
    return found


def edit(data: bytes, table: str = TABLE, *, replace: bool = False) -> Edited:
    file = SourceFile("vllm/v1/worker/gpu/warmup.py", data)
    return warmup.edit(file, classes_of(table), tables_of(table), there(file), replace=replace)


def there(file: SourceFile) -> FollowedWarmup | None:
    """The function of our name that the module has."""
    assert file.tree is not None
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == warmup.FUNCTION:
            return FollowedWarmup(file, node)
    return None


def rewrite(table: str = TABLE) -> Rewrite:
    def run(data: bytes) -> bytes:
        module = edit(data, table).module
        return data if module is None else module.bytes

    return run


def text(several: bool = False, table: str = TABLE) -> str:
    return warmup.function_text(tables_of(table), several)


SEVERAL = fork("01-several-launches").tree.inside[BLOCK_TABLE].decode()
BY_COUNT = [(TABLE, False), (SEVERAL, True)]


@pytest.mark.parametrize(("table", "several"), BY_COUNT)
def test_the_function_that_reaches_every_launch_is_put_at_the_end(
    table: str, several: bool
) -> None:
    rewrites(rewrite(table), MODULE, f"{MODULE}\n\n{text(several, table)}")


@pytest.mark.parametrize(
    "asked",
    [
        'num_tokens >= getattr(self, "padded_from", num_tokens + 1)',
        'hasattr(self, "padded_from") and num_tokens >= self.padded_from',
    ],
)
@pytest.mark.parametrize("of_class", ["", "    padded_from: int | None = None\n"])
def test_an_attribute_that_the_first_call_makes(asked: str, of_class: str) -> None:
    known = "self.padded_from is not None and num_tokens >= self.padded_from"
    made = "        self.padded_from: int | None = None\n"
    table = SEVERAL.replace(made, "").replace(known, asked if not of_class else known)
    table = table.replace("class BlockTable:\n", f"class BlockTable:\n{of_class}")
    assert table != SEVERAL
    rewrites(rewrite(table), MODULE, f"{MODULE}\n\n{text(True, table)}")


def test_rows_that_a_commit_passes_over_are_zeroed_on_the_device() -> None:
    marked = fork("15-rows-marked-dirty").tree.inside[BLOCK_TABLE].decode()
    assert "zero_()" not in text(table=marked)
    cleared = "[row_idx] = 0\n        self.dirty.add(row_idx)\n"
    marked = marked.replace(cleared, "[row_idx] = 0\n")
    assert "zero_()" in text(table=marked)
    assert "zero_()" not in text()


@pytest.mark.parametrize("table", [TABLE, SEVERAL])
def test_what_is_inserted_is_known_again(table: str) -> None:
    now = SourceFile("w.py", rewrite(table)(MODULE.encode()))
    assert warmup.is_ours(now, tables_of(table))
    crlf = SourceFile("w.py", rewrite(table)(MODULE.replace("\n", "\r\n").encode()))
    assert warmup.is_ours(crlf, tables_of(table))


def test_a_function_that_was_changed_is_not_ours() -> None:
    now = rewrite()(MODULE.encode())
    assert not warmup.is_ours(
        SourceFile("w.py", now.replace(b"null block", b"first one")), tables_of()
    )
    assert not warmup.is_ours(SourceFile("w.py", MODULE.encode()), tables_of())


@pytest.mark.parametrize(
    ("warm_up", "table", "reason"),
    [
        ("import x\n", TABLE, Reason.NO_ANCHOR),
        (MODULE, TABLE.replace("def add_row", "def put_row"), Reason.SIGNATURE_CHANGED),
    ],
)
def test_what_it_needs_and_is_not_there_is_refused(
    warm_up: str, table: str, reason: Reason
) -> None:
    with pytest.raises(Refusal) as caught:
        edit(warm_up.encode(), table)
    assert caught.value.reason is reason
