"""The unit-tests edit: what is appended to vLLM's own tests, and that it passes there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason, Status
from codemods.engine.planning import make_plan
from codemods.engine.sources import Edited, Refusal, SourceFile
from codemods.recipes.slot_mapping.edits import unit_tests
from tests.forks import trees
from tests.prove.forked import needs_the_verify_extra, run_tests
from tests.rewriting import Rewrite, leaves_alone, rewrites

KERNELS = [("v1.worker.block_table", "_slots_kernel")]
TESTS = "tests/v1/worker/test_gpu_model_runner.py"
MODULE = "import pytest\n\n\ndef test_something():\n    assert pytest\n"


def edit(
    data: bytes,
    kernels: list[tuple[str, str]] | None = None,
    *,
    warmup: bool = True,
    package: str = "vllm",
) -> Edited:
    found = KERNELS if kernels is None else kernels
    return unit_tests.edit(SourceFile(TESTS, data), package, found, warmup=warmup)


def rewrite(data: bytes) -> bytes:
    module = edit(data).module
    return data if module is None else module.bytes


def added(edited: Edited) -> str:
    assert edited.module is not None
    return edited.module.code.removeprefix(MODULE)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data, id="plain"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="BOM"),
        pytest.param(lambda data: data + b"# \xc3\xa9\n", id="comment at the end"),
        pytest.param(lambda data: data.rstrip(), id="no last line end"),
    ],
)
def test_the_tests_are_put_at_the_end(change: object) -> None:
    assert callable(change)
    was = change(MODULE.encode())
    now = rewrite(was)
    assert now.startswith(was)
    typed: Rewrite = rewrite
    rewrites(typed, was, now)


@pytest.mark.parametrize(
    ("kernels", "warmup", "count"),
    [
        (KERNELS, True, 4),
        (KERNELS, False, 1),
        ([], True, 3),
        ([("a", "x"), ("a", "y"), ("b", "z")], False, 2),
    ],
)
def test_each_edit_has_its_tests(kernels: list[tuple[str, str]], warmup: bool, count: int) -> None:
    edited = edit(MODULE.encode(), kernels, warmup=warmup)
    assert added(edited).count("\ndef test_") == count
    assert edited.outcome.detail.startswith(f"{count} test")
    assert ("num_tokens" in added(edited)) == bool(kernels)


def test_no_test_reads_source_text() -> None:
    assert not [word for word in ("inspect", "getsource", "ast.") if word in added(edit(OWN))]


@pytest.mark.parametrize("package", ["vllm", "acme_vllm", "a.deeper.vllm" + "x" * 60])
def test_the_package_is_imported_by_its_own_name(package: str) -> None:
    edited = edit(MODULE.encode(), [("m", f"_{letter * 30}") for letter in "abc"], package=package)
    assert f"from {package}.v1.worker.gpu.warmup import" in added(edited)
    assert max(map(len, added(edited).splitlines())) <= max(88, len(package) + 50)


OWN = (
    b"from types import SimpleNamespace\nfrom unittest.mock import MagicMock\n\n"
    b"import numpy as np\nimport pytest\nimport torch\n\n"
    b"from vllm.v1.worker.block_table import _slots_kernel\n"
)


def test_what_the_module_imports_is_used() -> None:
    now = rewrite(OWN).decode().removeprefix(OWN.decode())
    own = [line for line in now.splitlines() if re.match(" +(from|import) ", line)]
    assert set(own) == {"    from vllm.v1.worker.gpu.warmup import warmup_v1_slot_mapping_kernel"}
    rewrites(rewrite, OWN, OWN.decode() + now)


@pytest.mark.parametrize(
    "line",
    [
        "from numpy import array as np",
        "import numpy",
        "import torch as pytest",
        "if TYPE_CHECKING:\n    import torch",
        "from elsewhere import SimpleNamespace",
    ],
)
def test_another_thing_of_that_name_is_not_taken_for_it(line: str) -> None:
    without = rewrite(b"x = 1\n").removeprefix(b"x = 1\n")
    assert rewrite(f"{line}\n".encode()) == f"{line}\n".encode() + without


def test_no_import_is_added_at_the_top() -> None:
    assert not [
        line
        for line in added(edit(MODULE.encode())).splitlines()
        if line[:6] in ("import", "from v")
    ]


def test_a_module_that_tests_the_function_is_left_alone() -> None:
    data = f"{MODULE}\n\ndef test_other():\n    from vllm import warmup_v1_slot_mapping_kernel\n"
    leaves_alone(rewrite, data)
    one = edit(data.encode()).outcome
    assert (one.status, one.reason, one.line) == (Status.PRESENT, Reason.ALREADY_PRESENT, 9)


def test_a_tree_without_the_module_needs_nothing() -> None:
    one = unit_tests.edit(None, "vllm", KERNELS, warmup=True).outcome
    assert (one.status, one.reason) == (Status.NOT_NEEDED, Reason.NO_TEST_MODULE)


def test_a_name_that_is_taken_is_refused() -> None:
    data = f"{MODULE}\n\ndef _slot_mapping_tables():\n    pass\n"
    with pytest.raises(Refusal) as caught:
        edit(data.encode())
    assert caught.value.reason is Reason.AMBIGUOUS
    assert caught.value.line == 8


def test_tests_for_nothing_are_refused() -> None:
    with pytest.raises(Refusal) as caught:
        edit(MODULE.encode(), [], warmup=False)
    assert caught.value.reason is Reason.NO_ANCHOR


def fixed(root: Path, fork: str, skip: frozenset[str] = frozenset()) -> Path:
    """A fork's tree with a test module, rewritten."""
    tree = trees.fork(fork).tree
    tree.changed({TESTS: MODULE.encode()}).write_to(root)
    plan = make_plan(Checkout.find(root), registry.chosen(()), skip=skip)
    assert plan.changes, plan.outcomes
    for change in plan.changes:
        (root / change.path).write_bytes(change.after)
    return root


@needs_the_verify_extra
@pytest.mark.parametrize(
    "fork",
    ["00-monitor-in-utils", "00-work-in-private-method", "20-several-launches-dirty-rows-renamed"],
)
def test_the_tests_pass_on_the_fixed_tree(fork: str, tmp_path: Path) -> None:
    ran = run_tests(fixed(tmp_path, fork), TESTS)
    assert ran.returncode == 0, ran.stdout
    assert "5 passed" in ran.stdout


@needs_the_verify_extra
def test_the_tests_fail_where_an_edit_is_undone(tmp_path: Path) -> None:
    root = fixed(tmp_path, "00-monitor-in-triton-utils")
    table = root / "vllm" / trees.BLOCK_TABLE
    table.write_text(table.read_text().replace('(do_not_specialize=["num_tokens"])', ""))
    warm = root / "vllm" / trees.WARMUP
    warm.write_text(warm.read_text().replace("    finally:\n", "    finally:\n        return\n"))
    ran = run_tests(root, TESTS)
    failed = [
        line.split("::")[1].split(" ")[0] for line in ran.stdout.splitlines() if "FAILED" in line
    ]
    assert sorted(failed) == [
        "test_slot_mapping_kernels_leave_num_tokens_unspecialized",
        "test_slot_mapping_warmup_clears_the_row_when_the_launch_raises",
        "test_slot_mapping_warmup_launches_on_a_borrowed_row",
    ], ran.stdout
