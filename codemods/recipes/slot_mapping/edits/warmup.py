"""The `warmup` edit: appends `warmup_v1_slot_mapping_kernel` to the GPU worker's warm-up module.

With "num_tokens" unspecialised, the kernel's compile key depends only on the runner's own block
tables (stride, block sizes, constexprs, alignment), which do not change while the engine lives. So
one call on these tables, for each KV cache group, covers every request.
"""

from __future__ import annotations

import ast

from codemods.engine.plan import Reason
from codemods.engine.sources import Edited, Refusal, SourceFile
from codemods.recipes.slot_mapping.facts.block_tables import (
    LIMITS,
    Tables,
    check_interface,
    has_clear_row,
    marks_rows,
)
from codemods.recipes.slot_mapping.facts.names import BLOCK_TABLE, METHOD
from codemods.recipes.slot_mapping.facts.reach import FollowedWarmup, not_reached
from codemods.recipes.slot_mapping.facts.reach import harm as harm_of
from codemods.recipes.slot_mapping.facts.simulated_tables import BATCH_FILE, Classes
from codemods.recipes.warm_up import warmup_edit
from codemods.recipes.warm_up.worker_edit import Call

FUNCTION = "warmup_v1_slot_mapping_kernel"
CALL = Call(FUNCTION, "the slot mapping kernel")
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
    and cleared again. Tables with a row in use are left alone: a live request may own
    the row (elastic EP runs the warm-up again), and has compiled the kernel."""

_SEVERAL_DOCSTRING = """Compile the V1 slot mapping kernels for the runner's own block tables.

    The compile keys depend on the tables. Rows 0 and 1 are borrowed for tokens of
    block 1 and cleared again. Tables with a row in use are left alone: a live request
    may own the row (elastic EP runs the warm-up again), and has compiled the kernels."""

_ONE_LAUNCH = """\
    # Same dtypes and alignment as in the runner's call.
    query_start_loc = torch.arange(2, dtype=torch.int32, device=model_runner.device)
    positions = torch.zeros(1, dtype=torch.int64, device=model_runner.device)
    try:
        # Block 1: block 0 is the null block.
        block_tables.add_row(tuple([1] for _ in groups), 0)
        block_tables.commit_block_table(1)
        block_tables.compute_slot_mapping(1, query_start_loc, positions)
    finally:
        block_tables.clear_row(0)
        block_tables.commit_block_table(1)
"""
_ONE_CLEAN_UP = """\
    # Leave no slot of block 1 in the slot mapping.
    block_tables.compute_slot_mapping(1, query_start_loc, positions)
"""

_SEVERAL_LAUNCHES = """\
    size = min([2, *(group.max_num_reqs for group in groups)])
    size = min([size, *(group.max_num_batched_tokens for group in groups)])
    # Same dtypes and alignment as in the runner's call.
    positions = torch.zeros(size, dtype=torch.int64, device=model_runner.device)
    try:
        # Block 1: block 0 is the null block.
        for row in range(size):
            block_tables.add_row(tuple([1] for _ in groups), row)
        block_tables.commit_block_table(size)
        # Which kernel runs depends on the requests, or on the call before. These calls,
        # all of the same number of tokens, launch each kernel that a request can launch.
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
    # Leave no slot of block 1 in the slot mapping.
    block_tables.compute_slot_mapping(size, query_start_loc, positions)
"""

UNMARKED_ROWS = """\
        # clear_row() marks no row, so that the commit passes them over.
        for group in groups:
            group.block_table.gpu[:{rows}].zero_()
"""


_NO_CLEAR_ROW = """\
        # The tables have no clear_row().
        for group in groups:
            group.block_table.np[:{rows}] = 0
"""


def edit(
    file: SourceFile,
    classes: Classes,
    tables: Tables,
    there: FollowedWarmup | None,
    *,
    replace: bool,
) -> Edited:
    """Add, keep or replace the function in the warm-up module; raises Refusal.

    `there` is the function of that name that the tree has; `replace` puts this tool's in its
    place where the tree's is not right.
    """
    if there is None:
        text = _text_for(file, classes, tables)
        return warmup_edit.add(file, FUNCTION, text, f"calls {METHOD} on the runner's own tables")
    missed, harm = not_reached(classes, there), harm_of(classes, there)
    if missed is None and harm is None:
        _refuse_not_importable(classes, there)
        line = min([there.node.lineno, *(one.lineno for one in there.node.decorator_list)])
        return warmup_edit.already_present(there.file, FUNCTION, line)
    if replace and there.file.name == file.name:
        text = _text_for(file, classes, tables)
        return warmup_edit.replaced(
            file, FUNCTION, text, f"in place of one with which {missed or harm}"
        )
    raise Refusal(
        Reason.NOT_REACHED if missed is not None else Reason.HARMFUL,
        f"{FUNCTION} is there, and {missed or harm}; --replace puts this tool's function in its "
        "place",
        there.file.name,
        there.node.lineno,
    )


def _refuse_not_importable(classes: Classes, there: FollowedWarmup) -> None:
    from codemods.recipes.warm_up.importable import not_importable  # only a fixed tree needs it

    found = not_importable(classes.sources, there.file, there.node, (BLOCK_TABLE, BATCH_FILE))
    if found is not None:
        raise Refusal(
            Reason.HARMFUL,
            f"{FUNCTION} is there, and {found}; fix the import, or the engine does not start",
            there.file.name,
            there.node.lineno,
        )


def _text_for(file: SourceFile, classes: Classes, tables: Tables) -> str:
    """The first of the function's forms that launches all that requests can; raises Refusal."""
    missed = ""
    for several in (False, True):
        check_interface(tables, LIMITS if several else ())
        text = function_text(tables, several)
        missed = not_reached(classes, _parsed(text)) or ""
        if not missed:
            return text
    raise Refusal(
        Reason.NOT_REACHED,
        f"expected a few small calls to launch every kernel that {METHOD} can launch; found that "
        f"{missed}; the warm-up has to be written for this tree; {warmup_edit.WITHOUT}",
        tables.file.name,
    )


def _parsed(text: str) -> FollowedWarmup:
    file = SourceFile("", text.encode())
    assert file.tree is not None
    node = file.tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return FollowedWarmup(file, node)


def function_text(tables: Tables, several_launches: bool) -> str:
    """The function as it is inserted, with four-space indents and LF."""
    return form(several_launches, clears=has_clear_row(tables), marks=marks_rows(tables))


def form(several_launches: bool, *, clears: bool, marks: bool) -> str:
    """One of the function's forms: for tables that have clear_row(), that commit marked rows."""
    if several_launches:
        docstring, body, rows = _SEVERAL_DOCSTRING, _SEVERAL_LAUNCHES, "size"
        clean_up = _SEVERAL_CLEAN_UP
    else:
        docstring, body, rows = _ONE_DOCSTRING, _ONE_LAUNCH, "1"
        clean_up = _ONE_CLEAN_UP
    if not clears:
        head, _, rest = body.partition("    finally:\n")
        nothing = rest.replace("clear_row(", "add_row(tuple([] for _ in groups), ")
        body = f"{head}    finally:\n{_NO_CLEAR_ROW.format(rows=rows)}{nothing}"
    unmarked = UNMARKED_ROWS.format(rows=rows) if marks else ""
    return _HEAD.format(docstring=docstring) + body + unmarked + clean_up


def is_ours(warmup: SourceFile, tables: Tables) -> bool:
    """Whether the module's function is the one that this tool inserts, to the letter."""
    texts = (function_text(tables, several) for several in (False, True))
    return warmup_edit.has_text(warmup, FUNCTION, texts)
