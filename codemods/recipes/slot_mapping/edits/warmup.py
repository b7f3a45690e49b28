"""The `warmup` edit: appends `warmup_v1_slot_mapping_kernel` to the GPU worker's warm-up module.

With "num_tokens" unspecialised, what still decides the kernel's compile key is fixed for an
engine's life and hangs on the runner's own block tables (stride, block sizes, constexprs,
alignment), so one call on these for each KV cache group covers every request.
"""

from __future__ import annotations

from codemods.engine.sources import Edited, SourceFile
from codemods.recipes.slot_mapping.facts.block_tables import (
    Tables,
    check_interface,
    commit_passes_over,
)
from codemods.recipes.slot_mapping.facts.names import METHOD
from codemods.recipes.warm_up import module

FUNCTION = "warmup_v1_slot_mapping_kernel"
_HEAD = f'''@torch.inference_mode()
def {FUNCTION}(model_runner: Any) -> None:
    """{{docstring}}
    """
    block_tables = model_runner.input_batch.block_table
    groups = block_tables.block_tables
    if any(group.num_blocks_per_row.any() for group in groups):
        return

'''

_ONE_DOCSTRING = """Compile the V1 slot mapping kernel for the runner's own block tables.

    The compile key depends on the tables. Row 0 is borrowed for one token of block 1
    and cleared again. Tables with a row in use are left alone: live requests may own
    it (elastic EP runs the warm-up again), and the kernel has run on them."""

_SEVERAL_DOCSTRING = """Compile the V1 slot mapping kernels for the runner's own block tables.

    The compile keys depend on the tables. Rows 0 and 1 are borrowed for tokens of
    block 1 and cleared again. Tables with a row in use are left alone: live requests
    may own it (elastic EP runs the warm-up again), and the kernels have run on them."""

_ONE_LAUNCH = """\
    # Same dtypes and alignment as in the runner's call.
    query_start_loc = torch.arange(2, dtype=torch.int32, device=model_runner.device)
    positions = torch.zeros(1, dtype=torch.int64, device=model_runner.device)
    try:
        # Block 0 is the null block.
        block_tables.add_row(tuple([1] for _ in groups), 0)
        block_tables.commit_block_table(1)
        block_tables.compute_slot_mapping(1, query_start_loc, positions)
    finally:
        block_tables.clear_row(0)
        block_tables.commit_block_table(1)
"""
_ONE_CLEAN_UP = """\
    # Dummy runs may use these slots: leave none of block 1.
    block_tables.compute_slot_mapping(1, query_start_loc, positions)
"""

_SEVERAL_LAUNCHES = """\
    # All calls have the same number of tokens, so that each of them sends the next on
    # to another kernel.
    size = min([2, *(group.max_num_reqs for group in groups)])
    size = min([size, *(group.max_num_batched_tokens for group in groups)])
    # Same dtypes and alignment as in the runner's call.
    positions = torch.zeros(size, dtype=torch.int64, device=model_runner.device)
    try:
        # Block 0 is the null block.
        for row in range(size):
            block_tables.add_row(tuple([1] for _ in groups), row)
        block_tables.commit_block_table(size)
        # A first call, a repeated one and one with several requests launch different
        # kernels.
        for num_reqs in (1, 1, size):
            query_start_loc = torch.arange(
                0,
                size + 1,
                size // num_reqs,
                dtype=torch.int32,
                device=model_runner.device,
            )
            block_tables.compute_slot_mapping(num_reqs, query_start_loc, positions)
    finally:
        for row in range(size):
            block_tables.clear_row(row)
        block_tables.commit_block_table(size)
"""
_SEVERAL_CLEAN_UP = """\
    # Dummy runs may use these slots: leave none of block 1.
    block_tables.compute_slot_mapping(size, query_start_loc, positions)
"""

_UNMARKED_ROWS = """\
        # clear_row() marks no row, so that the commit passes them over.
        for group in groups:
            group.block_table.gpu[:{rows}].zero_()
"""


def edit(name: str, warmup: SourceFile | None, tables: Tables, several_launches: bool) -> Edited:
    """What becomes of the file `name`; raises Refusal."""
    file = module.required(warmup, name, FUNCTION)
    there = module.present(file, FUNCTION)
    if there is not None:
        return there
    check_interface(tables)
    text = function_text(tables, several_launches)
    return module.add(file, FUNCTION, text, f"calls {METHOD} on the runner's own tables")


def function_text(tables: Tables, several_launches: bool) -> str:
    """The function as it is inserted, with four-space indents and LF."""
    if several_launches:
        docstring, body, rows = _SEVERAL_DOCSTRING, _SEVERAL_LAUNCHES, "size"
        clean_up = _SEVERAL_CLEAN_UP
    else:
        docstring, body, rows = _ONE_DOCSTRING, _ONE_LAUNCH, "1"
        clean_up = _ONE_CLEAN_UP
    unmarked = _UNMARKED_ROWS.format(rows=rows) if commit_passes_over(tables) else ""
    return _HEAD.format(docstring=docstring) + body + unmarked + clean_up


def is_ours(warmup: SourceFile, tables: Tables) -> bool:
    """Whether the module's function is the one that this tool inserts, to the letter."""
    texts = (function_text(tables, several) for several in (False, True))
    return module.has_text(warmup, FUNCTION, texts)
