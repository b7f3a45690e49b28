"""Other warm-ups of the kernel are named, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.slot_mapping.upstream import other_warmups

from .checkouts import checkout

RUNNER = "v1/worker/gpu_model_runner.py"
HELPER = "model_executor/warmup/kernel_warmup.py"
CALL = "    self.input_batch.block_table.compute_slot_mapping(1, a, b)\n"


def found(root: Path, text: str | bytes, name: str = RUNNER) -> list[str]:
    return other_warmups(checkout(root, {name: text}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"def _warm(self):\n{CALL}", "_warm"),
        (f"class A:\n  def _warm(self):\n{CALL}", "_warm"),
        (f"async def warm(self):\n{CALL}", "warm"),
        (
            f"def other():\n    pass\n\n\ndef _warm(self):\n{CALL}\n\ndef after():\n    pass\n",
            "_warm",
        ),
        ("tables.compute_slot_mapping(1)\n", "the module itself"),
        (f"def _warm(self):\n{CALL}".replace("\n", "\r\n"), "_warm"),
    ],
)
def test_a_function_that_calls_the_method_is_named(
    text: str, expected: str, tmp_path: Path
) -> None:
    assert found(tmp_path, text) == [f"vllm/{RUNNER}:{expected}"]


def test_a_helper_of_the_kernel_warm_up_is_named(tmp_path: Path) -> None:
    assert found(tmp_path, f"def warm(runner):\n{CALL}", HELPER) == [f"vllm/{HELPER}:warm"]


def test_a_function_that_calls_twice_is_named_once(tmp_path: Path) -> None:
    assert len(found(tmp_path, f"def warm(runner):\n{CALL}{CALL}")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"def _prepare_inputs(self):\n{CALL}",
        f"def compute_slot_mapping(self):\n{CALL}",
        f"def warmup_v1_slot_mapping_kernel(self):\n{CALL}",
        "def warm(self):\n    # tables.compute_slot_mapping(1)\n    pass\n",
        "def warm(self):\n    x = 1  # not tables.compute_slot_mapping(1)\n",
        "def warm(self):\n    tables.compute_slot_mappings(1)\n",
        "def warm(self):\n    compute_slot_mapping(1)\n",
        "def compute_slot_mapping(self):\n    pass\n",
        b"\x00\xff\xfe compute_slot_mapping(",
    ],
)
def test_nothing_else_is_named(text: str | bytes, tmp_path: Path) -> None:
    assert found(tmp_path, text) == []


def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    assert found(tmp_path, f"def warm(runner):\n{CALL}", "v1/spec_decode/eagle.py") == []


def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    one = checkout(tmp_path, {})
    (one.path("v1/worker") / "broken.py").symlink_to("nowhere.py")
    (one.path("v1/worker") / "folder.py").mkdir()
    assert other_warmups(one) == []
