"""The warmup edit: what is appended to the worker's warm-up module, and when it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.edits import warmup
from codemods.recipes.slot_mapping.facts.block_tables import Tables
from tests.forks.trees import BLOCK_TABLE, WARMUP, fork
from tests.rewriting import Rewrite, leaves_alone, rewrites

BASE = fork("00-no-monitor").tree.inside
TABLE = BASE[BLOCK_TABLE].decode()
MODULE = BASE[WARMUP].decode()


def tables_of(table: str = TABLE) -> Tables:
    sources = Sources(Checkout(Path("nowhere"), "vllm"))
    return Tables.of(sources, SourceFile("vllm/v1/worker/block_table.py", table.encode()))


def edit(data: bytes, table: str = TABLE, *, several: bool = False) -> Edited:
    file = SourceFile("warmup.py", data)
    return warmup.edit("warmup.py", file, tables_of(table), several)


def rewrite(table: str = TABLE, *, several: bool = False) -> Rewrite:
    def run(data: bytes) -> bytes:
        module = edit(data, table, several=several).module
        return data if module is None else module.bytes

    return run


def text(several: bool = False, table: str = TABLE) -> str:
    return warmup.function_text(tables_of(table), several)


@pytest.mark.parametrize("several", [False, True])
def test_the_function_is_put_at_the_end(several: bool) -> None:
    rewrites(rewrite(several=several), MODULE, f"{MODULE}\n\n{text(several)}")


def test_rows_that_a_commit_passes_over_are_zeroed_on_the_device() -> None:
    marked = fork("15-rows-marked-dirty").tree.inside[BLOCK_TABLE].decode()
    assert "zero_()" not in text(table=marked)
    cleared = "[row_idx] = 0\n        self.dirty.add(row_idx)\n"
    marked = marked.replace(cleared, "[row_idx] = 0\n")
    assert "zero_()" in text(table=marked)
    assert "zero_()" not in text()


@pytest.mark.parametrize("several", [False, True])
def test_what_is_inserted_is_known_again(several: bool) -> None:
    now = SourceFile("w.py", rewrite(several=several)(MODULE.encode()))
    assert warmup.is_ours(now, tables_of())
    crlf = SourceFile("w.py", rewrite(several=several)(MODULE.replace("\n", "\r\n").encode()))
    assert warmup.is_ours(crlf, tables_of())


def test_a_function_that_was_changed_is_not_ours() -> None:
    now = rewrite()(MODULE.encode())
    assert not warmup.is_ours(
        SourceFile("w.py", now.replace(b"null block", b"first one")), tables_of()
    )
    assert not warmup.is_ours(SourceFile("w.py", MODULE.encode()), tables_of())


def test_a_function_of_the_name_is_left_alone() -> None:
    leaves_alone(rewrite(), f"{MODULE}\n\ndef {warmup.FUNCTION}(model_runner):\n    pass\n")


@pytest.mark.parametrize(
    ("warm_up", "table", "reason"),
    [
        (None, TABLE, Reason.NO_WARMUP_MODULE),
        ("import x\n", TABLE, Reason.NO_ANCHOR),
        (MODULE, TABLE.replace("def clear_row", "def wipe_row"), Reason.SIGNATURE_CHANGED),
    ],
)
def test_what_it_stands_on_and_is_not_there_is_refused(
    warm_up: str | None, table: str, reason: Reason
) -> None:
    file = None if warm_up is None else SourceFile("warmup.py", warm_up.encode())
    with pytest.raises(Refusal) as caught:
        warmup.edit("warmup.py", file, tables_of(table), False)
    assert caught.value.reason is reason
