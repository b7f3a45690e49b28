"""Every text that a version of this tool inserted for the recipe: today's, and older ones.

Where an edit's text changes, what it was is added here: a test takes out what each version
inserted.
"""

from __future__ import annotations

from itertools import product

from codemods.recipes.slot_mapping.edits import unit_tests, warmup
from codemods.recipes.slot_mapping.facts.names import PARAMETER
from codemods.recipes.warm_up.removal import Past, order_test
from codemods.transforms.known_text import regex

_SEVERAL_0_1_0 = '''\
@torch.inference_mode()
def warmup_v1_slot_mapping_kernel(model_runner: Any) -> None:
    """Compile the V1 slot mapping kernels for the runner's own block tables.

    The compile keys depend on the tables. Rows 0 and 1 are borrowed for tokens of
    block 1 and cleared again. Tables with a row in use are left alone: live requests
    may own it (elastic EP runs the warm-up again), and the kernels have run on them.
    """
    block_tables = model_runner.input_batch.block_table
    groups = block_tables.block_tables
    if any(group.num_blocks_per_row.any() for group in groups):
        return

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
{marked}    # Dummy runs may use these slots: leave none of block 1.
    block_tables.compute_slot_mapping(size, query_start_loc, positions)
'''
_BOTH = (False, True)
_FORMS = [
    warmup.form(several, clears=clears, marks=marks)
    for several, clears, marks in product(_BOTH, _BOTH, _BOTH)
]
_NUMBERED = [text.replace("unspecialized(", "unspecialized{number}(") for text in unit_tests.TEXTS]

PAST = Past(
    warmup.CALL,
    forms=[*_FORMS, _SEVERAL_0_1_0],
    tests=[*_NUMBERED, order_test("slot_mapping", warmup.FUNCTION)],
    parameter=PARAMETER,
    parts={
        "function": warmup.FUNCTION,
        "marked": f"(?:{regex(warmup.UNMARKED_ROWS, rows='size')})?",
        "number": r"(?:_\d+)?",
        "checked": "|".join(
            (
                regex(unit_tests.ONE_KERNEL, kernel=r"\w+"),
                regex(unit_tests.KERNELS, loop=r"for kernel in \([^()]*\):"),
            )
        ),
    },
)
