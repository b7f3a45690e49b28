"""The unit-tests edit: what is added, whose imports it uses, and whether the tests can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Edited, Refusal, SourceFile
from codemods.recipes.kv_block_zeroing.edits import unit_tests
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from tests.prove.forked import needs_the_verify_extra, run_tests
from tests.rewriting import rewrites, sound

from .. import forks

KERNEL = ("v1.worker.utils", "_zero_kv_blocks_kernel")
ATTRIBUTES = ("_kv_block_zeroer", "kv_block_zeroer")
PLAIN = '"""Tests of the runner."""\n\n\ndef test_it_runs():\n    pass\n'
OWN = (
    "from types import SimpleNamespace\n\n"
    f"from vllm.v1.worker.gpu.warmup import {FUNCTION}\n\n\ndef test_it_runs():\n    pass\n"
)


def edit(
    text: str,
    kernel: tuple[str, str] | None = KERNEL,
    attributes: tuple[str, ...] = ATTRIBUTES,
) -> Edited:
    file = SourceFile("tests/v1/worker/test_gpu_model_runner.py", text.encode())
    return unit_tests.edit(file, "vllm", kernel, attributes)


def added(text: str, **options: object) -> str:
    def rewrite(data: bytes) -> bytes:
        module = edit(data.decode(), **options).module  # type: ignore[arg-type]
        return data if module is None else module.bytes

    after = rewrite(text.encode())
    rewrites(rewrite, text, after)
    sound(rewrite, text.encode(), after)
    return after.decode().removeprefix(text)


def test_each_test_imports_what_the_module_does_not() -> None:
    text = added(PLAIN)
    assert text.count("    from types import SimpleNamespace\n") == 2
    assert text.count(f"    from vllm.v1.worker.gpu.warmup import {FUNCTION}\n\n") == 2


def test_the_modules_own_imports_are_used() -> None:
    text = added(OWN.replace(FUNCTION, "warmup_kernels"))
    assert "SimpleNamespace\n" not in text


def test_there_is_a_test_for_each_edit_in_force_and_none_for_others() -> None:
    assert added(PLAIN).count("\ndef test_") == 3
    assert added(PLAIN, kernel=None).count("\ndef test_") == 2
    only = added(PLAIN, attributes=())
    assert only.count("\ndef test_") == 1
    assert FUNCTION not in only


def test_one_runner_makes_a_tuple_of_one() -> None:
    assert 'for name in ("_kv_block_zeroer",):' in added(PLAIN, attributes=ATTRIBUTES[:1])


def test_no_tests_are_added_for_nothing() -> None:
    with pytest.raises(Refusal, match="none of these is in the tree"):
        edit(PLAIN, None, ())


def test_no_module_needs_none() -> None:
    outcome = unit_tests.edit(None, "vllm", KERNEL, ATTRIBUTES).outcome
    assert (outcome.status, outcome.reason) == (Status.NOT_NEEDED, Reason.NO_TEST_MODULE)


def test_a_module_that_tests_the_function_is_left_alone() -> None:
    outcome = edit(f"{PLAIN}\n\ndef test_{FUNCTION}():\n    pass\n").outcome
    assert (outcome.status, outcome.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)


def test_a_name_that_is_taken_is_refused() -> None:
    taken = "def test_kv_block_zeroing_warmup_zeroes_the_null_block():\n    pass\n"
    with pytest.raises(Refusal, match="defines test_kv_block_zeroing_warmup") as caught:
        edit(PLAIN + "\n\n" + taken)
    assert caught.value.reason is Reason.AMBIGUOUS


TESTS = "tests/v1/worker/test_gpu_model_runner.py"
BREAKS = {
    "the list": ("vllm/v1/worker/utils.py", 'do_not_specialize=["n_blocks"]', ""),
    "the block": ("vllm/v1/worker/gpu/warmup.py", "zero_block_ids([0])", "zero_block_ids([1])"),
    "the count": ("vllm/v1/worker/gpu/warmup.py", "num_blocks > 0", "num_blocks > -1"),
    "the zeroer": ("vllm/v1/worker/gpu/warmup.py", "zeroer is not None and", ""),
}


@needs_the_verify_extra
@pytest.mark.parametrize("broken", [None, *BREAKS])
def test_the_tests_pass_on_the_fixed_tree_and_fail_on_a_broken_one(
    tmp_path: Path, broken: str | None
) -> None:
    files = {**forks.fork("00-both-runners").files, TESTS: PLAIN.encode()}
    files = forks.rewritten(files, forks.planned(files))
    if broken is not None:
        name, old, new = BREAKS[broken]
        assert old.encode() in files[name]
        files[name] = files[name].replace(old.encode(), new.encode())
    forks.write(files, tmp_path)
    ran = run_tests(tmp_path, TESTS)
    assert ran.returncode == (0 if broken is None else 1), ran.stdout[-2000:]
