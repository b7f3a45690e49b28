"""The `unit-tests` edit: tests for `kernel` and `warmup`, where the checkout has vLLM's tests.

They use what the module imports at its top and import the rest themselves, so that they pass in
any fork's copy of it, with and without a GPU. The worker's call has none: to run that method takes
an engine, and a test that reads its source would test the text.
"""

from __future__ import annotations

from codemods.engine.sources import Edited, SourceFile
from codemods.recipes.slot_mapping.edits.warmup import FUNCTION
from codemods.recipes.warm_up import unit_tests_edit
from codemods.recipes.warm_up.unit_tests_edit import WIDTH, imports, laid_out

_KERNEL = '''def test_slot_mapping_kernels_leave_num_tokens_unspecialized():
    """No class of num_tokens (1, divisible by 16, other) is a kernel of its own."""
{imports}    # Only a JITFunction has parameters: no interpreted one, none without Triton.
{checked}'''

ONE_KERNEL = """    params = {{p.name: p for p in getattr({kernel}, "params", ())}}
    assert not params or params["num_tokens"].do_not_specialize
"""

KERNELS = """    {loop}
        params = {{p.name: p for p in getattr(kernel, "params", ())}}
        assert not params or params["num_tokens"].do_not_specialize
"""

_TABLES = '''def _slot_mapping_tables(num_groups: int, error: Exception | None = None):
    """Block tables that keep what is called on them, of two rows for each group."""
{imports}    groups = [
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
'''

_BORROWS = """def test_slot_mapping_warmup_launches_on_a_borrowed_row():
{imports}    tables = _slot_mapping_tables(num_groups=2)
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
"""

_RAISES = """def test_slot_mapping_warmup_clears_the_row_when_the_launch_raises():
{imports}    tables = _slot_mapping_tables(num_groups=1, error=RuntimeError("launch"))
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
"""

_LIVE = """def test_slot_mapping_warmup_leaves_live_rows_alone():
{imports}    tables = _slot_mapping_tables(num_groups=2)
    tables.block_tables[1].num_blocks_per_row[1] = 3
    {function}(
        SimpleNamespace(
            input_batch=SimpleNamespace(block_table=tables), device=torch.device("cpu")
        )
    )
    assert not tables.method_calls
"""

# Each with what it uses of other packages.
_OF_THE_WARMUP = (
    (_BORROWS, ("SimpleNamespace", "torch")),
    (_RAISES, ("SimpleNamespace", "pytest", "torch")),
    (_LIVE, ("SimpleNamespace", "torch")),
)
TEXTS = (_KERNEL, _TABLES, _BORROWS, _RAISES, _LIVE)


def edit(
    file: SourceFile | None, package: str, kernels: list[tuple[str, str]], *, warmup: bool
) -> Edited:
    """Add the tests to the test module; raises Refusal.

    `package` is the name that the tests import it by; `kernels` are (module, name) pairs of what
    the kernel edit covers; `warmup` says whether that edit is in force, so that no test stands for
    what is not there.
    """
    there = unit_tests_edit.nothing_to_add(file, FUNCTION)
    if there is not None or file is None:
        assert there is not None
        return there
    parts = _of_kernels(file, package, kernels)
    return unit_tests_edit.add(file, parts + (_of_warmup(file, package) if warmup else []))


def _of_kernels(file: SourceFile, package: str, kernels: list[tuple[str, str]]) -> list[str]:
    parts = []
    for number, module in enumerate(dict.fromkeys(module for module, _ in kernels)):
        found = [name for owner, name in kernels if owner == module]
        text = _KERNEL.format(
            imports=imports(file, (), (f"{package}.{module}", found)), checked=_checked(found)
        )
        parts.append(
            text if not number else text.replace("unspecialized(", f"unspecialized_{number + 1}(")
        )
    return parts


def _of_warmup(file: SourceFile, package: str) -> list[str]:
    home = (f"{package}.v1.worker.gpu.warmup", [FUNCTION])
    return [
        _TABLES.format(imports=imports(file, ("MagicMock", "np"))),
        *(
            text.format(imports=imports(file, uses, home), function=FUNCTION)
            for text, uses in _OF_THE_WARMUP
        ),
    ]


def _checked(kernels: list[str]) -> str:
    one = ONE_KERNEL.format(kernel=kernels[0])
    if len(kernels) == 1 and max(map(len, one.splitlines())) <= WIDTH:
        return one
    return KERNELS.format(loop=laid_out("    for kernel in (", kernels, "):").strip())
