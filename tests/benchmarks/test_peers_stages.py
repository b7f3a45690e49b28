"""Which stage a sample of the stack belongs to, and what a row of costs holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers.git import committed
from peers.stages import Stage, stage_of
from peers.timing import Cost, Timed, changed_files, memory_of, summary

MAIN = ["<module> (codemods/__main__.py:25)", "main (codemods/cli/main.py:35)"]


@pytest.mark.parametrize(
    ("inner", "stage"),
    [
        ([], Stage.START),
        (["_find_and_load (<frozen importlib._bootstrap>:1176)"], Stage.START),
        (["read (codemods/engine/checkout.py:9)", "open (x.py:1)"], Stage.READ),
        (["run (codemods/engine/planning.py:9)", "walk (os.py:3)"], Stage.READ),
        (["parse_module (libcst/_parser/entrypoints.py:65)"], Stage.PARSE),
        (["edit (codemods/recipes/slot_mapping/recipe.py:1)"], Stage.DECIDE),
        (["edit (codemods/transforms/names.py:1)", "walk (ast.py:3)"], Stage.DECIDE),
        (["table (codemods/output/report.py:1)"], Stage.PRINT),
        (["table (codemods/report.py:1)"], Stage.PRINT),
        (["write (codemods/write/__init__.py:1)"], Stage.WRITE),
    ],
)
def test_a_stack_has_one_stage(inner: list[str], stage: Stage) -> None:
    assert stage_of([*MAIN, *inner]) is stage


@pytest.mark.parametrize("last", ["wait (threading.py:327)", "Condition.wait (threading.py:327)"])
def test_a_thread_that_waits_for_another_does_not_count(last: str) -> None:
    assert stage_of([*MAIN, last]) is None


def test_a_row_holds_medians_and_both_ends() -> None:
    costs = [Cost(0.3, 0.2), Cost(0.1, 0.1), Cost(0.2, 0.4)]
    assert summary(costs) == {
        "runs": 3, "ms": 200.0, "from": 100.0, "to": 300.0, "cpu_ms": 200.0
    }  # fmt: skip


def test_the_files_that_a_patch_changes_are_those_of_its_headers(tmp_path: Path) -> None:
    patch = tmp_path / "p"
    patch.write_text("--- a/x.py\n+++ b/x.py\n++ b/no.py\n+++ b/v/y.py\n", "utf-8")
    assert changed_files(patch) == ("x.py", "v/y.py")


def test_memory_is_the_command_s_own_and_not_what_the_benchmark_holds(tmp_path: Path) -> None:
    held = bytearray(64 << 20)
    committed(tmp_path)
    assert memory_of(Timed("small", ["true"], tmp_path)) < 16
    assert len(held)


def test_a_command_that_ends_otherwise_than_expected_gives_no_figure(tmp_path: Path) -> None:
    committed(tmp_path)
    with pytest.raises(RuntimeError, match="exited 1, not 0"):
        memory_of(Timed("failing", ["false"], tmp_path))
