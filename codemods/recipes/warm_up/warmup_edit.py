"""The `warmup` edit: appends a recipe's function to the GPU worker's warm-up module."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.recipe import Run
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.warm_up import edit_names
from codemods.transforms import names
from codemods.transforms.extend_import import with_from_import
from codemods.transforms.statements import append, line_of, parse_statements, replace

MODULE = "v1/worker/gpu/warmup.py"
# What a refusal of the warm-up ends with.
WITHOUT = "use --skip warmup --skip worker to make only the other edits"


def required(warmup: SourceFile | None, name: str, function: str) -> SourceFile:
    """The warm-up module; raises Refusal where there is none at `name`, relative to the root."""
    if warmup is None:
        raise Refusal(
            Reason.NO_WARMUP_MODULE,
            f"there is no {MODULE} to put {function} into; expected the module that holds "
            "warmup_kernels; add it, or take the kernel edit alone with --only kernel",
            name,
        )
    return warmup


def defines(sources: Sources, function: str) -> bool:
    """Whether the tree's warm-up module has the function."""
    file = sources.read(MODULE)
    return file is not None and bool(names.functions(file.module, function))


def require_function(run: Run, worker: SourceFile, function: str) -> None:
    """Refuse the worker's call where the run neither finds nor adds the function."""
    if run.in_force(edit_names.WARMUP) or defines(run.sources, function):
        return
    refused = next((one for one in run.outcomes if one.edit == edit_names.WARMUP), None)
    raise Refusal(
        refused.reason if refused is not None else Reason.NO_WARMUP_MODULE,
        f"the call needs {function}, which this run does not add",
        worker.name,
    )


def present(warmup: SourceFile, function: str) -> Edited | None:
    """The outcome where the module has the function, None where it has not."""
    found = names.functions(warmup.module, function)
    return already_present(warmup, function, line_of(warmup.module, found[0])) if found else None


def already_present(file: SourceFile, function: str, line: int) -> Edited:
    """The outcome where the tree has the function already."""
    return Edited(
        Outcome(
            edit_names.WARMUP,
            Status.PRESENT,
            Reason.ALREADY_PRESENT,
            f"{function} is there",
            file.name,
            line,
        )
    )


def replaced(warmup: SourceFile, function: str, text: str, detail: str) -> Edited:
    """Put the function's `text` in the place of the one that is there; raises Refusal."""
    module = _with_imports(warmup.module, warmup.name)
    old = names.functions(module, function)
    if len(old) != 1:
        raise Refusal(
            Reason.AMBIGUOUS, f"{function} is defined {len(old)} times; keep one", warmup.name
        )
    new = parse_statements(module, text)[0].with_changes(leading_lines=old[0].leading_lines)
    outcome = Outcome(
        edit_names.WARMUP, Status.EDIT, Reason.REPLACED, f"{function} {detail}", warmup.name
    )
    return Edited(outcome, replace(module, {old[0]: new}), marker=f"def {function}(")


def add(warmup: SourceFile, function: str, text: str, detail: str) -> Edited:
    """Append the function's `text`, which uses `torch` and `Any`; raises Refusal without torch.

    `detail` follows the function's name in the outcome.
    """
    changed = append(_with_imports(warmup.module, warmup.name), text)
    outcome = Outcome(
        edit_names.WARMUP, Status.EDIT, Reason.ADDED, f"{function} {detail}", warmup.name
    )
    return Edited(outcome, changed, marker=f"def {function}(")


def has_text(warmup: SourceFile, function: str, texts: Iterable[str]) -> bool:
    """Whether the module's function is, to the letter, one that this tool inserts."""
    found = names.functions(warmup.module, function)
    if len(found) != 1:
        return False
    code = warmup.module.code_for_node(found[0].with_changes(leading_lines=[])).strip()
    return any(code.splitlines() == text.strip().splitlines() for text in texts)


def _with_imports(module: cst.Module, name: str) -> cst.Module:
    """The module with `torch` and `Any` bound; refuses one that has no torch."""
    bound = {one.local for one in names.run_time_imports(module)}
    if "torch" not in bound:
        raise Refusal(Reason.NO_ANCHOR, "expected `import torch` in the warm-up module", name, 1)
    if "Any" in bound:
        return module
    return with_from_import(module, "typing", "Any")
