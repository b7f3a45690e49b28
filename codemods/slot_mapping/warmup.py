"""The `warmup` edit: appends `warmup_v1_slot_mapping_kernel` to the GPU worker's warm-up module.

With "num_tokens" unspecialised, what still decides the kernel's compile key is fixed for an
engine's life and hangs on the runner's own block tables (stride, block sizes, constexprs,
alignment), so one call on these for each KV cache group covers every request.
"""

from __future__ import annotations

import libcst as cst

from codemods.checkout import BLOCK_TABLE
from codemods.outcome import EditName, Outcome, Reason, Status
from codemods.slot_mapping.launches import BLOCK_TABLE_CLASS, METHOD
from codemods.slot_mapping.source_file import Edited, Refusal, SourceFile
from codemods.transforms import names
from codemods.transforms.extend_import import with_from_import
from codemods.transforms.statements import append, line_of

FUNCTION = "warmup_v1_slot_mapping_kernel"
MODULE = "v1/worker/gpu/warmup.py"
TABLES_CLASS = "MultiGroupBlockTable"

# What the function calls on the tables, and the arguments in the order in which it gives them.
_CALLS = {
    "add_row": ("block_ids", "row_idx"),
    "clear_row": ("row_idx",),
    "commit_block_table": ("num_reqs",),
    METHOD: ("num_reqs", "query_start_loc", "positions"),
}

_HEAD = f'''@torch.inference_mode()
def {FUNCTION}(model_runner: Any) -> None:
    """{{docstring}}
    """
    block_tables = model_runner.input_batch.block_table
    groups = block_tables.block_tables
    if any(group.num_blocks_per_row.any() for group in groups):
        return

'''

_ONE_DOCSTRING = """Compile the V1 slot mapping kernel, which no dummy run launches.

    The runner's own block tables are used, since the compile key depends on them.
    Row 0 is borrowed for one token of block 1 and cleared again. Tables with a row
    in use are left alone: they belong to live requests (elastic EP runs the warm-up
    again), and the kernel was compiled when the engine started."""

_SEVERAL_DOCSTRING = """Compile the V1 slot mapping kernels, which no dummy run launches.

    The runner's own block tables are used, since the compile keys depend on them.
    Rows 0 and 1 are borrowed for tokens of block 1 and cleared again. Tables with a
    row in use are left alone: they belong to live requests (elastic EP runs the
    warm-up again), and the kernels were compiled when the engine started."""

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

_SEVERAL_LAUNCHES = """\
    # All calls have the same number of tokens, so that what one of them leaves behind
    # for the next holds for every later batch.
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

_UNMARKED_ROWS = """\
        # clear_row() marks no row, so that the commit passes them over.
        for group in groups:
            group.block_table.gpu[:{rows}].zero_()
"""


def edit(
    name: str,
    warmup: SourceFile | None,
    block_table: SourceFile,
    several_launches: bool,
    others: list[str],
) -> Edited:
    """What becomes of the file `name`; raises Refusal.

    `others` are warm-ups of the same kernel that the tree has already.
    """
    if warmup is None:
        raise Refusal(
            Reason.NO_WARMUP_MODULE,
            f"there is no {MODULE} to put {FUNCTION} into; expected the module that holds "
            "warmup_kernels; add it, or take the kernel edit alone with --only kernel",
            name,
        )
    module = warmup.module
    present = names.functions(module, FUNCTION)
    if present:
        return Edited(
            Outcome(
                EditName.WARMUP,
                Status.PRESENT,
                Reason.ALREADY_PRESENT,
                f"{FUNCTION} is there",
                warmup.name,
                line_of(module, present[0]),
            )
        )
    _check_interface(block_table)
    text = function_text(block_table.module, several_launches)
    changed = append(_with_imports(module, warmup.name), text)
    beside = f", beside {', '.join(others)}" if others else ""
    outcome = Outcome(
        EditName.WARMUP,
        Status.EDIT,
        Reason.ADDED,
        f"{FUNCTION} calls {METHOD} on the runner's own tables{beside}",
        warmup.name,
    )
    return Edited(outcome, changed, marker=f"def {FUNCTION}(")


def function_text(block_table: cst.Module, several_launches: bool) -> str:
    """The function as it is inserted, with four-space indents and LF."""
    if several_launches:
        docstring, body, rows = _SEVERAL_DOCSTRING, _SEVERAL_LAUNCHES, "size"
    else:
        docstring, body, rows = _ONE_DOCSTRING, _ONE_LAUNCH, "1"
    unmarked = _UNMARKED_ROWS.format(rows=rows) if _commit_passes_over(block_table) else ""
    return _HEAD.format(docstring=docstring) + body + unmarked


def is_ours(warmup: SourceFile, block_table: SourceFile) -> bool:
    """Whether the module's function is the one that this tool inserts, to the letter."""
    found = names.functions(warmup.module, FUNCTION)
    if len(found) != 1:
        return False
    code = warmup.module.code_for_node(found[0].with_changes(leading_lines=[])).strip()
    texts = (function_text(block_table.module, several) for several in (False, True))
    lines = code.splitlines()
    return any(lines == text.strip().splitlines() for text in texts)


def _check_interface(block_table: SourceFile) -> None:
    """Refuse a tree whose block tables lack what the function calls."""
    tables = _class(block_table, TABLES_CLASS)
    for method, given in _CALLS.items():
        found = _method(block_table.module, tables, method)
        if found is None or not _takes(found, given):
            there = block_table.module.code_for_node(found.params) if found else "no such method"
            raise Refusal(
                Reason.SIGNATURE_CHANGED,
                f"expected {TABLES_CLASS}.{method} to take ({', '.join(given)}), found "
                f"({there}); the warm-up has to be written for this tree, --skip warmup "
                "--skip worker takes the rest",
                block_table.name,
                line_of(block_table.module, found or tables),
            )
    for owner, attribute in (
        (tables, "block_tables"),
        (_class(block_table, BLOCK_TABLE_CLASS), "num_blocks_per_row"),
    ):
        if not _mentions(owner, f"self.{attribute}"):
            raise Refusal(
                Reason.SIGNATURE_CHANGED,
                f"expected {owner.name.value} to have {attribute}, found none",
                block_table.name,
                line_of(block_table.module, owner),
            )


def _mentions(owner: cst.ClassDef, path: str) -> bool:
    return any(
        isinstance(node, cst.Attribute) and names.dotted(node) == path
        for method in names.walk(owner.body)
        if isinstance(method, cst.FunctionDef)
        for node in names.descend(method.body)
    )


def _class(file: SourceFile, name: str) -> cst.ClassDef:
    found = [c for c in names.classes(file.module) if c.name.value == name]
    if not found:
        raise Refusal(
            Reason.SIGNATURE_CHANGED, f"expected a class {name} in {BLOCK_TABLE}", file.name
        )
    return found[0]


def _method(module: cst.Module, owner: cst.ClassDef, name: str) -> cst.FunctionDef | None:
    by_name = {c.name.value: c for c in names.classes(module)}
    found = names.functions(owner.body, name)
    if found:
        return found[-1]
    for base in owner.bases:
        inherited = by_name.get(names.dotted(base.value) or "")
        if inherited is not None and inherited is not owner:
            return _method(module, inherited, name)
    return None


def _takes(function: cst.FunctionDef, given: tuple[str, ...]) -> bool:
    """Whether a method can be called with these positional arguments, under whatever names.

    One that has the names in another order means something else by them.
    """
    positional = [*function.params.posonly_params, *function.params.params][1:]
    required = sum(1 for parameter in positional if parameter.default is None)
    keywords = any(parameter.default is None for parameter in function.params.kwonly_params)
    spread = isinstance(function.params.star_arg, cst.Param)
    places = {parameter.name.value: i for i, parameter in enumerate(positional)}
    return (
        required <= len(given)
        and (spread or len(given) <= len(positional))
        and not keywords
        and all(places.get(name, i) == i for i, name in enumerate(given))
    )


def _commit_passes_over(block_table: cst.Module) -> bool:
    """Whether commit_block_table picks rows by a mark that clear_row does not set."""
    owner = next((c for c in names.classes(block_table) if c.name.value == BLOCK_TABLE_CLASS), None)
    if owner is None:
        return False
    commit = _method(block_table, owner, "commit_block_table")
    clear = _method(block_table, owner, "clear_row")
    if commit is None or clear is None:
        return False
    marks = _own_attributes(commit) - {"block_table", "num_blocks_per_row", "max_num_reqs"}
    return bool(marks) and not marks & _own_attributes(clear)


def _own_attributes(method: cst.FunctionDef) -> set[str]:
    paths = (
        names.dotted(node) for node in names.descend(method.body) if isinstance(node, cst.Attribute)
    )
    return {path.split(".")[1] for path in paths if path and path.startswith("self.")}


def _with_imports(module: cst.Module, name: str) -> cst.Module:
    """The module with `torch` and `Any` bound; refuses one that has no torch."""
    at_run_time = [one for one in module.body if not _for_the_type_checker(one)]
    bound = {one.local for one in names.imports(module.with_changes(body=at_run_time))}
    if "torch" not in bound:
        raise Refusal(Reason.NO_ANCHOR, "expected `import torch` in the warm-up module", name, 1)
    if "Any" in bound:
        return module
    return with_from_import(module, "typing", "Any")


def _for_the_type_checker(statement: cst.BaseStatement) -> bool:
    path = names.dotted(statement.test) if isinstance(statement, cst.If) else None
    return path is not None and path.split(".")[-1] == "TYPE_CHECKING"
