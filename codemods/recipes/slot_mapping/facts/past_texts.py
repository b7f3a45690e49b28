"""Every text that a version of this tool inserted for the recipe, since 0.1.0.

They are kept apart from the edits: a text that changes there is added here, beside the older one.
A test holds today's texts to these patterns.
"""

from __future__ import annotations

import re

from codemods.recipes.warm_up.removal import Past, pattern

FUNCTION = "warmup_v1_slot_mapping_kernel"

_HEAD = f'''@torch.inference_mode()
def {FUNCTION}(model_runner: Any) -> None:
    """$docstring
    """
    block_tables = model_runner.input_batch.block_table
    groups = block_tables.block_tables
    if any(group.num_blocks_per_row.any() for group in groups):
        return

'''

_ONE = """\
    # Same dtypes and alignment as in the runner's call.
    query_start_loc = torch.arange(2, dtype=torch.int32, device=model_runner.device)
    positions = torch.zeros(1, dtype=torch.int64, device=model_runner.device)
    try:
        # Block 0 is the null block.
        block_tables.add_row(tuple([1] for _ in groups), 0)
        block_tables.commit_block_table(1)
        block_tables.compute_slot_mapping(1, query_start_loc, positions)
    finally:
$zeroed        block_tables.$cleared
        block_tables.commit_block_table(1)
$marked    # Dummy runs may use these slots: leave none of block 1.
    block_tables.compute_slot_mapping(1, query_start_loc, positions)
"""

_SEVERAL = """\
$above    size = min([2, *(group.max_num_reqs for group in groups)])
    size = min([size, *(group.max_num_batched_tokens for group in groups)])
    # Same dtypes and alignment as in the runner's call.
    positions = torch.zeros(size, dtype=torch.int64, device=model_runner.device)
    try:
        # Block 0 is the null block.
        for row in range(size):
            block_tables.add_row(tuple([1] for _ in groups), row)
        block_tables.commit_block_table(size)
$why        for num_reqs in (1, 1, size):
            query_start_loc = torch.arange(
                0,
                size + 1,
                size // num_reqs,
                dtype=torch.int32,
                device=model_runner.device,
            )
            block_tables.compute_slot_mapping(num_reqs, query_start_loc, positions)
    finally:
$zeroed        for row in range(size):
            block_tables.$cleared
        block_tables.commit_block_table(size)
$marked    # Dummy runs may use these slots: leave none of block 1.
    block_tables.compute_slot_mapping(size, query_start_loc, positions)
"""

_PARTS = {
    "docstring": r"Compile the V1 slot mapping kernels? for the runner's own block tables\.\n\n"
    r"    The compile keys? depends? on the tables\. (?:"
    r"Row 0 is borrowed for one token of block 1\n"
    r"    and cleared again\. Tables with a row in use are left alone: live requests may own\n"
    r"    it \(elastic EP runs the warm-up again\), and the kernel has run on them\.|"
    r"Rows 0 and 1 are borrowed for tokens of\n"
    r"    block 1 and cleared again\. Tables with a row in use are left alone: live requests\n"
    r"    may own it \(elastic EP runs the warm-up again\), and the kernels have run on them\.)",
    # Tables without clear_row().
    "zeroed": r"(?:        # The tables have no clear_row\(\)\.\n"
    r"        for group in groups:\n"
    r"            group\.block_table\.np\[:(?:1|size)\] = 0\n)?",
    "cleared": r"(?:clear_row\(|add_row\(tuple\(\[\] for _ in groups\), )(?:0|row)\)",
    # Tables that commit marked rows alone.
    "marked": r"(?:        # clear_row\(\) marks no row, so that the commit passes them over\.\n"
    r"        for group in groups:\n"
    r"            group\.block_table\.gpu\[:(?:1|size)\]\.zero_\(\)\n)?",
    # 0.1.0 said above the sizes what is now said above the loop.
    "above": r"(?:    # All calls have the same number of tokens, so that each of them sends the "
    r"next on\n    # to another kernel\.\n)?",
    "why": r"        # A first call, a repeated one and one with several requests launch "
    r"different\n        # kernels\.\n|"
    r"        # Which kernel runs depends on the requests, or on the call before\. These calls,\n"
    r"        # all of the same number of tokens, launch each kernel that a request can launch\.\n",
}

_IMPORTED = rf"(?:from \.gpu\.warmup import {FUNCTION}\n\n(?:    )?)?"
_GUARDED = f"""\
if not $path:
    # V1: compile the slot mapping kernel before the first request.
    ${{imported}}{FUNCTION}($path)
"""
_UNGUARDED = f"""\
# Compile the slot mapping kernel before the first request.
${{imported}}{FUNCTION}($path)
"""

_TESTS = (
    '''def test_slot_mapping_kernels_leave_num_tokens_unspecialized$number():
    """No class of num_tokens (1, divisible by 16, other) is a kernel of its own."""
$imports    # Only a JITFunction has parameters: no interpreted one, none without Triton.
$checked''',
    '''def _slot_mapping_tables(num_groups: int, error: Exception | None = None):
    """Block tables that keep what is called on them, of two rows for each group."""
$imports    groups = [
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
''',
    """def test_slot_mapping_warmup_launches_on_a_borrowed_row():
$imports    tables = _slot_mapping_tables(num_groups=2)
    warmup_v1_slot_mapping_kernel(
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
""",
    """def test_slot_mapping_warmup_clears_the_row_when_the_launch_raises():
$imports    tables = _slot_mapping_tables(num_groups=1, error=RuntimeError("launch"))
    with pytest.raises(RuntimeError, match="launch"):
        warmup_v1_slot_mapping_kernel(
            SimpleNamespace(
                input_batch=SimpleNamespace(block_table=tables),
                device=torch.device("cpu"),
            )
        )
    names = [name for name, _, _ in tables.method_calls]
    assert "clear_row" in names
    assert names[-1] == "commit_block_table"
""",
    """def test_slot_mapping_warmup_leaves_live_rows_alone():
$imports    tables = _slot_mapping_tables(num_groups=2)
    tables.block_tables[1].num_blocks_per_row[1] = 3
    warmup_v1_slot_mapping_kernel(
        SimpleNamespace(
            input_batch=SimpleNamespace(block_table=tables), device=torch.device("cpu")
        )
    )
    assert not tables.method_calls
""",
    # Until 0.2.0.
    """def test_worker_warms_slot_mapping_up_before_the_jit_monitor():
$imports    # A method is indented; a comment that names the monitor does not count.
    source = inspect.getsource($path)
    nodes = ast.walk(ast.parse("if True:\\n" + source))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    lines = [(ast.unparse(call.func), call.lineno) for call in calls]
    warmup = min(n for name, n in lines if name == "warmup_v1_slot_mapping_kernel")
    assert all(warmup < n for name, n in lines if "jit_monitor" in name)
""",
)
_CHECKED = (
    r"    params = \{p\.name: p for p in getattr\(\w+, \"params\", \(\)\)\}\n"
    r"    assert not params or params\[\"num_tokens\"\]\.do_not_specialize\n|"
    r"    for kernel in \([^()]*\):\n"
    r"        params = \{p\.name: p for p in getattr\(kernel, \"params\", \(\)\)\}\n"
    r"        assert not params or params\[\"num_tokens\"\]\.do_not_specialize\n"
)

PAST = Past(
    FUNCTION,
    warmup=pattern(_HEAD + _ONE, _HEAD + _SEVERAL, **_PARTS),
    call=pattern(_GUARDED, _UNGUARDED, path=r"[\w.]+", imported=_IMPORTED),
    tests=pattern(*_TESTS, number=r"(?:_\d+)?", checked=_CHECKED, path=r"[\w.]+"),
    tested=re.compile(
        rb"\b(?:test_slot_mapping_(?:kernels_leave_num_tokens_unspecialized|warmup_)\w*"
        rb"|_slot_mapping_tables|test_worker_warms_slot_mapping_up_before_the_jit_monitor)\b"
    ),
)
