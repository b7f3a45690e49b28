"""The `kernel` edit: lists a parameter in do_not_specialize of every kernel that is launched."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.recipe import Run
from codemods.engine.sources import Edited, Refusal
from codemods.recipes.warm_up import edit_names
from codemods.recipes.warm_up.launches import Kernel, jitted_functions
from codemods.transforms.do_not_specialize import AddDoNotSpecialize, Merge
from codemods.transforms.jit import Scope, parameters
from codemods.transforms.statements import line_of

_LINE = 88  # vLLM's line length


def decide(
    run: Run, kernels: Sequence[Kernel], parameter: str, unresolved: Sequence[str] = ()
) -> None:
    """Decide the edit for a recipe: each file that defines one of the kernels."""
    files = {one.file.name: one.file for one in kernels}
    with run.edit(edit_names.KERNEL, kernels[0].file.name):
        for name, edited in edit(kernels, parameter, unresolved).items():
            run.take(edited, files.get(name))


def edit(
    kernels: Sequence[Kernel], parameter: str, unresolved: Sequence[str] = ()
) -> dict[str, Edited]:
    """Add the parameter in each file that defines a kernel, by name; raises Refusal.

    They share one outcome; the file that it names comes first, and `unresolved`, which is launched
    too and is out of reach, is named in it.
    """
    touched = [kernel for kernel in kernels if takes(kernel, parameter)]
    if not touched:
        raise _nothing_to_specialise(kernels, parameter)
    modules = {kernel.file.name: kernel.file.module for kernel in touched}
    merges: dict[str, list[Merge]] = {}
    for kernel in touched:
        module = modules[kernel.file.name]
        width = _LINE if _is_last_kernel(kernel) else sys.maxsize
        transformer = AddDoNotSpecialize(
            module, kernel.name, parameter, kernel.definitions, width=width
        )
        modules[kernel.file.name] = module.visit(transformer)
        merges.setdefault(kernel.name, []).extend(transformer.merges)
        if Merge.UNKNOWN in transformer.merges:
            raise Refusal(
                Reason.AMBIGUOUS,
                f"what {kernel.name} has in do_not_specialize cannot be read off the source; "
                f'add "{parameter}" by hand, or leave the edit out with --skip kernel',
                kernel.file.name,
                line_of(kernel.file.module, kernel.definitions[0]),
            )
    changed = {
        name: module
        for name, module in modules.items()
        if any(
            merge is not Merge.PRESENT
            for kernel in touched
            if kernel.file.name == name
            for merge in merges[kernel.name]
        )
    }
    outcome = _outcome(touched, parameter, merges)
    if unresolved:
        also = f"; {', '.join(unresolved)}, launched too, is not defined in this package"
        outcome = replace(outcome, detail=outcome.detail + also)
    order = sorted(changed, key=lambda name: name != outcome.file)
    return {name: Edited(outcome, changed[name]) for name in order} or {"": Edited(outcome)}


def _is_last_kernel(kernel: Kernel) -> bool:
    """Whether no kernel is below: Triton's cache key covers a kernel's line number."""
    kernels = [*jitted_functions(kernel.file)]
    return bool(kernels) and kernels[-1] in kernel.definitions


def _outcome(touched: Sequence[Kernel], parameter: str, merges: dict[str, list[Merge]]) -> Outcome:
    done = {merge for found in merges.values() for merge in found}
    first = next(
        (k for k in touched if any(m is not Merge.PRESENT for m in merges[k.name])), touched[0]
    )
    listed = ", ".join(kernel.name for kernel in touched)
    if done <= {Merge.PRESENT}:
        status, reason = Status.PRESENT, Reason.ALREADY_PRESENT
        detail = f'do_not_specialize of {listed} has "{parameter}"'
    elif Merge.MERGED in done:
        status, reason = Status.EDIT, Reason.MERGED
        detail = f'"{parameter}" joins do_not_specialize of {listed}'
    else:
        status, reason = Status.EDIT, Reason.ADDED
        detail = f'do_not_specialize=["{parameter}"] on {listed}'
    present = status is Status.PRESENT
    line = line_of(first.file.module, first.definitions[0]) if present else None
    return Outcome(edit_names.KERNEL, status, reason, detail, first.file.name, line)


def takes(kernel: Kernel, parameter: str) -> bool:
    """Whether a definition of the kernel has the parameter, and not as a constant."""
    scope = Scope.of(kernel.file.module)
    return any(
        one.name.value == parameter and not scope.is_constexpr(one)
        for definition in kernel.definitions
        for one in parameters(definition)
    )


def _nothing_to_specialise(kernels: Sequence[Kernel], parameter: str) -> Refusal:
    kernel = kernels[0]
    found = list(parameters(kernel.definitions[0]))
    line = line_of(kernel.file.module, kernel.definitions[0])
    if any(one.name.value == parameter for one in found):
        what = f"its {parameter} is a constexpr, so each value is a kernel of its own"
    else:
        what = f"its parameters are {', '.join(p.name.value for p in found) or 'none'}"
    return Refusal(
        Reason.PARAMETER_MISSING,
        f"{kernel.name} has no parameter {parameter} to leave unspecialised: {what}; "
        "if that is right, use --skip kernel to make only the other edits",
        kernel.file.name,
        line,
    )
