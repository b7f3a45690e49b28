"""The `unit-tests` edit: tests for the other edits, where the checkout has vLLM's tests.

They stand on nothing but themselves: every import is inside the test, so that they pass in any
fork's copy of the module, with and without a GPU.
"""

from __future__ import annotations

from codemods.engine.sources import Edited, SourceFile
from codemods.recipes.slot_mapping.edits.warmup import FUNCTION
from codemods.recipes.warm_up import test_module
from codemods.recipes.warm_up.test_module import WIDTH, import_line, laid_out

_KERNEL = '''def test_slot_mapping_kernels_leave_num_tokens_unspecialized():
    """No class of num_tokens (1, divisible by 16, other) is a kernel of its own."""
    {imported}

    # Only a JITFunction has parameters: no interpreted one, none without Triton.
{checked}'''

_ONE_KERNEL = """    params = {{p.name: p for p in getattr({kernel}, "params", ())}}
    assert not params or params["num_tokens"].do_not_specialize
"""

_KERNELS = """    {loop}
        params = {{p.name: p for p in getattr(kernel, "params", ())}}
        assert not params or params["num_tokens"].do_not_specialize
"""

_WARMUP = '''def _slot_mapping_tables(num_groups: int, error: Exception | None = None):
    """Block tables that keep what is called on them, of two rows for each group."""
    from unittest.mock import MagicMock

    import numpy as np

    groups = [
        MagicMock(
            num_blocks_per_row=np.zeros(2, dtype=np.int32),
            max_num_reqs=2,
            max_num_batched_tokens=16,
        )
        for _ in range(num_groups)
    ]
    tables = MagicMock(block_tables=groups)
    tables.compute_slot_mapping.side_effect = error
    return tables


def test_slot_mapping_warmup_launches_on_a_borrowed_row():
    from types import SimpleNamespace

    import torch

    {imported}

    tables = _slot_mapping_tables(num_groups=2)
    {function}(
        SimpleNamespace(
            input_batch=SimpleNamespace(block_table=tables), device=torch.device("cpu")
        )
    )

    # Block 0 is the null block.
    assert tables.add_row.call_args_list[0].args == (([1], [1]), 0)
    for call in tables.compute_slot_mapping.call_args_list:
        num_reqs, query_start_loc, positions = call.args
        assert query_start_loc.dtype == torch.int32
        assert positions.dtype == torch.int64
        assert len(query_start_loc) == num_reqs + 1
        assert query_start_loc[-1] == len(positions)
    names = [name for name, _, _ in tables.method_calls]
    launch = names.index("compute_slot_mapping")
    assert names.index("commit_block_table") < launch < names.index("clear_row")
    # The last launch computes the slots of the cleared rows.
    assert names[-2:] == ["commit_block_table", "compute_slot_mapping"]


def test_slot_mapping_warmup_clears_the_row_when_the_launch_raises():
    from types import SimpleNamespace

    import pytest
    import torch

    {imported}

    tables = _slot_mapping_tables(num_groups=1, error=RuntimeError("launch"))
    with pytest.raises(RuntimeError, match="launch"):
        {function}(
            SimpleNamespace(
                input_batch=SimpleNamespace(block_table=tables),
                device=torch.device("cpu"),
            )
        )
    names = [name for name, _, _ in tables.method_calls]
    assert "clear_row" in names
    assert names[-1] == "commit_block_table"


def test_slot_mapping_warmup_leaves_live_rows_alone():
    from types import SimpleNamespace

    import torch

    {imported}

    tables = _slot_mapping_tables(num_groups=2)
    tables.block_tables[1].num_blocks_per_row[1] = 3
    {function}(
        SimpleNamespace(
            input_batch=SimpleNamespace(block_table=tables), device=torch.device("cpu")
        )
    )
    assert not tables.method_calls
'''

_WORKER = """def test_worker_warms_slot_mapping_up_before_the_jit_monitor():
    import ast
    import inspect

    {imported}

    # A method is indented; a comment that names the monitor does not count.
    source = inspect.getsource({worker})
    nodes = ast.walk(ast.parse("if True:\\n" + source))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    lines = [(ast.unparse(call.func), call.lineno) for call in calls]
    warmup = min(n for name, n in lines if name == "{function}")
    assert all(warmup < n for name, n in lines if "jit_monitor" in name)
"""


def edit(
    file: SourceFile | None,
    package: str,
    kernels: list[tuple[str, str]],
    *,
    warmup: bool,
    worker: str | None,
) -> Edited:
    """What becomes of the test module; raises Refusal.

    `package` is the name that the tests import it by; `kernels` are (module, name) pairs of what
    the kernel edit covers; `warmup` and `worker` (`CLASS.METHOD`) say whether these edits are in
    force, so that no test stands for what is not there.
    """
    there = test_module.settled(file, FUNCTION)
    if there is not None or file is None:
        assert there is not None
        return there
    return test_module.add(file, _parts(package, kernels, warmup=warmup, worker=worker))


def _parts(
    package: str, kernels: list[tuple[str, str]], *, warmup: bool, worker: str | None
) -> list[str]:
    parts = []
    for number, module in enumerate(dict.fromkeys(module for module, _ in kernels)):
        found = [name for owner, name in kernels if owner == module]
        text = _KERNEL.format(
            imported=import_line(f"{package}.{module}", found), checked=_checked(found)
        )
        parts.append(
            text if not number else text.replace("unspecialized(", f"unspecialized_{number + 1}(")
        )
    if warmup:
        imported = import_line(f"{package}.v1.worker.gpu.warmup", [FUNCTION])
        parts.append(_WARMUP.format(imported=imported, function=FUNCTION))
    if worker:
        imported = import_line(f"{package}.v1.worker.gpu_worker", [worker.partition(".")[0]])
        parts.append(_WORKER.format(imported=imported, worker=worker, function=FUNCTION))
    return parts


def _checked(kernels: list[str]) -> str:
    one = _ONE_KERNEL.format(kernel=kernels[0])
    if len(kernels) == 1 and max(map(len, one.splitlines())) <= WIDTH:
        return one
    return _KERNELS.format(loop=laid_out("    for kernel in (", kernels, "):").strip())
