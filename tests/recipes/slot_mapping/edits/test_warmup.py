"""The warmup edit: what is appended to the worker's warm-up module, and when it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.edits import warmup
from codemods.recipes.slot_mapping.facts.block_tables import Tables
from tests.forks.trees import BLOCK_TABLE, WARMUP, fork
from tests.rewriting import Rewrite, leaves_alone, rewrites, sound

BASE = fork("00-no-monitor").tree.inside
TABLE = BASE[BLOCK_TABLE].decode()
MODULE = BASE[WARMUP].decode()


def tables_of(table: str = TABLE) -> Tables:
    sources = Sources(Checkout(Path("nowhere"), "vllm"))
    return Tables.of(sources, SourceFile("vllm/v1/worker/block_table.py", table.encode()))


def edit(
    data: bytes, table: str = TABLE, *, several: bool = False, others: tuple[str, ...] = ()
) -> Edited:
    file = SourceFile("warmup.py", data)
    return warmup.edit("warmup.py", file, tables_of(table), several, list(others))


def rewrite(table: str = TABLE, *, several: bool = False) -> Rewrite:
    def run(data: bytes) -> bytes:
        module = edit(data, table, several=several).module
        return data if module is None else module.bytes

    return run


def refusal(data: bytes, table: str = TABLE) -> Refusal:
    with pytest.raises(Refusal) as caught:
        edit(data, table)
    return caught.value


def text(several: bool = False, table: str = TABLE) -> str:
    return warmup.function_text(tables_of(table), several)


@pytest.mark.parametrize("several", [False, True])
def test_the_function_is_put_at_the_end(several: bool) -> None:
    rewrites(rewrite(several=several), MODULE, f"{MODULE}\n\n{text(several)}")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="BOM"),
        pytest.param(lambda data: b"# coding: latin-1\n# \xe9\n" + data, id="latin-1"),
        pytest.param(lambda data: data.replace(b"    ", b"\t"), id="tabs"),
        pytest.param(lambda data: data.rstrip(), id="no last line end"),
        pytest.param(lambda data: data + b"\n# the end\n", id="comment at the end"),
        pytest.param(lambda data: data.replace(b"from typing import Any\n", b""), id="no Any"),
        pytest.param(
            lambda data: data.replace(b"import Any", b"import NamedTuple"), id="another of typing"
        ),
        pytest.param(
            lambda data: data.replace(b"import Any", b"import (\n    Literal,  # why\n)"),
            id="typing in lines",
        ),
    ],
)
def test_what_stands_in_the_file_stays(change: object) -> None:
    assert callable(change)
    was = change(MODULE.encode())
    now = rewrite()(was)
    assert now.startswith(b"\xef\xbb\xbf") == was.startswith(b"\xef\xbb\xbf")
    assert b"def warmup_v1_slot_mapping_kernel(" in now
    assert re.search(rb"import \(?\s*[^)\n]*Any|^    Any", now, re.MULTILINE)
    sound(rewrite(), was, now)


def test_a_function_of_the_name_is_left_alone() -> None:
    for body in ("    pass\n", "    return other(model_runner)\n"):
        data = f"{MODULE}\n\ndef {warmup.FUNCTION}(model_runner):\n{body}"
        leaves_alone(rewrite(), data)
        one = edit(data.encode()).outcome
        assert (one.status, one.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)
        assert one.line == MODULE.count("\n") + 3


def test_a_function_behind_if_is_there_too() -> None:
    leaves_alone(
        rewrite(), f"{MODULE}\n\nif torch:\n    def {warmup.FUNCTION}(runner):\n        pass\n"
    )


@pytest.mark.parametrize(
    "more",
    [
        f"# {warmup.FUNCTION}(model_runner)\n",
        f"TEXT = '{warmup.FUNCTION}'\n",
        f"def {warmup.FUNCTION}_2(runner):\n    pass\n",
        f"class A:\n    def {warmup.FUNCTION}(self):\n        pass\n",
    ],
)
def test_a_mere_mention_is_not_the_function(more: str) -> None:
    data = f"{MODULE}\n\n{more}".encode()
    assert edit(data).outcome.status is Status.EDIT


def test_other_warm_ups_are_named() -> None:
    assert (
        "beside runner.py:_warm"
        in edit(MODULE.encode(), others=("runner.py:_warm",)).outcome.detail
    )
    assert "beside" not in edit(MODULE.encode()).outcome.detail


def test_a_tree_without_the_module_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        warmup.edit("warmup.py", None, tables_of(), False, [])
    assert caught.value.reason is Reason.NO_WARMUP_MODULE
    assert "--only kernel" in caught.value.detail


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", ""),
        ("import torch\n", "import torch as th\n"),
        ("import torch\n", "if TYPE_CHECKING:\n    import torch\n"),
        ("import torch\n", "if typing.TYPE_CHECKING:\n    import torch\n"),
        ("import torch\n", "def f():\n    import torch\n"),
    ],
)
def test_a_module_that_does_not_bind_torch_is_refused(old: str, new: str) -> None:
    one = refusal(MODULE.replace(old, new).encode())
    assert one.reason is Reason.NO_ANCHOR
    assert "import torch" in one.detail


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_a_name_for_the_type_checker_alone_is_imported_for_all(test: str) -> None:
    was = MODULE.replace(
        "from typing import Any\n", f"import typing\n\nif {test}:\n    from typing import Any\n"
    )
    now = rewrite()(was.encode()).decode()
    assert now.count("import Any\n") == 2
    assert re.search(r"^from typing import Any$", now, re.MULTILINE)
    sound(rewrite(), was.encode(), now.encode())


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
    one = refusal(MODULE.encode(), TABLE.replace(f"def {method}({old})", f"def {method}({new})"))
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
    assert edit(MODULE.encode(), table).outcome.status is Status.EDIT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class MultiGroupBlockTable", "class Tables"),
        ("self.num_blocks_per_row", "self.counts"),
        ("self.block_tables", "self.tables"),
    ],
)
def test_tables_without_what_the_function_reads_are_refused(old: str, new: str) -> None:
    assert refusal(MODULE.encode(), TABLE.replace(old, new)).reason is Reason.SIGNATURE_CHANGED


@pytest.mark.parametrize(
    "method", ["add_row", "clear_row", "commit_block_table", "compute_slot_mapping"]
)
def test_tables_without_a_method_are_refused(method: str) -> None:
    head, tables = TABLE.split("class MultiGroupBlockTable")
    table = f"{head}class MultiGroupBlockTable{tables.replace(f'def {method}', 'def other')}"
    one = refusal(MODULE.encode(), table)
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
    assert edit(MODULE.encode(), table).outcome.status is Status.EDIT


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
    one = refusal(MODULE.encode(), TABLE.replace(old, new))
    assert one.reason is Reason.SIGNATURE_CHANGED
    assert "of another type" in one.detail
