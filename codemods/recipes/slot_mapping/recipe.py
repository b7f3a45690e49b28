"""The slot-mapping recipe: compiles the V1 slot-mapping kernel before the first request."""

from __future__ import annotations

import ast
import re
from contextlib import suppress

from codemods.engine.checkout import RUNNER, WORKER
from codemods.engine.plan import About, Outcome, Reason, Status, Verdict
from codemods.engine.recipe import Recipe, Run
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.slot_mapping.edits import unit_tests, warmup
from codemods.recipes.slot_mapping.facts import unlaunched, why
from codemods.recipes.slot_mapping.facts.block_tables import Tables, check_classes
from codemods.recipes.slot_mapping.facts.computed_slots import wrong_slots
from codemods.recipes.slot_mapping.facts.names import (
    BLOCK_TABLE,
    BLOCK_TABLE_CLASS,
    KERNEL,
    METHOD,
    PARAMETER,
)
from codemods.recipes.slot_mapping.facts.reach import FollowedWarmup
from codemods.recipes.slot_mapping.facts.simulated_tables import Classes
from codemods.recipes.warm_up import edit_names as edits
from codemods.recipes.warm_up import kernel_edit, unit_tests_edit, warmup_edit, worker_edit
from codemods.recipes.warm_up.launches import Launches, find
from codemods.recipes.warm_up.unlaunched import refuse_two_classes
from codemods.transforms import names
from codemods.transforms.jit import parameters
from codemods.transforms.statements import line_of


def decide(run: Run) -> None:
    """Decide the four edits, from the kernels that BlockTable.compute_slot_mapping launches."""
    sources = run.sources
    launches, block_table = _launches(sources)
    nothing = _nothing_to_do(sources, launches, block_table)
    if nothing is not None or block_table is None:
        reason, run.why = nothing or (Reason.NO_KERNEL, "")
        file = block_table.name if block_table else None
        if reason is Reason.SUPERSEDED_UPSTREAM or sources.read(RUNNER) is None:
            _remove_leftovers(run, reason, file)
            return
        run.every_edit(Status.NOT_NEEDED, reason, run.why, file)
        return
    with run.edit(edits.KERNEL, launches.kernels[0].file.name):
        _refuse_wrong_slots(run, block_table, launches)
        kernel_edit.decide(run, launches.kernels, PARAMETER, launches.unresolved)
    with run.edit(edits.WARMUP, sources.checkout.name(warmup_edit.MODULE)):
        _warmup(run, block_table, launches)
    worker_edit.decide(run, warmup.CALL)
    with run.edit(edits.UNIT_TESTS, unit_tests_edit.EXPECTED):
        _unit_tests(run, block_table, launches)
    run.why = _why(run, launches)


def _remove_leftovers(run: Run, reason: Reason, file: str | None) -> None:
    # Only a tree that upstream has fixed, or without a V1 runner, needs these.
    from codemods.recipes.slot_mapping.facts.past_texts import PAST
    from codemods.recipes.warm_up.removal import remove_leftovers

    remove_leftovers(run, PAST, reason, file)


def _launches(sources: Sources) -> tuple[Launches, SourceFile | None]:
    block_table = sources.read(BLOCK_TABLE)
    if block_table is None:
        return Launches(()), None
    launches = find(sources, block_table, BLOCK_TABLE_CLASS, METHOD)
    refuse_two_classes(launches.owner)
    if not launches.kernels and not launches.kernel_class:
        unlaunched.refuse(launches, block_table, sources)
    return launches, block_table


def _nothing_to_do(
    sources: Sources, launches: Launches, block_table: SourceFile | None
) -> tuple[Reason, str] | None:
    if block_table is None:
        if sources.read(RUNNER) is None:
            return (
                Reason.NO_KERNEL,
                f"The V1 runner is gone: there is no {RUNNER} and no {BLOCK_TABLE}.",
            )
        return (
            Reason.NO_KERNEL,
            f"There is no {BLOCK_TABLE}, so V1 launches no slot mapping kernel.",
        )
    if launches.kernel_class is not None:
        why_not = (
            f"{BLOCK_TABLE_CLASS} registers the compile keys of {launches.kernel_class}, so that "
            "the engine compiles them before the first request."
        )
        return Reason.SUPERSEDED_UPSTREAM, why_not
    if launches.owner is None:
        why_not = f"{BLOCK_TABLE} has no class {BLOCK_TABLE_CLASS}, and launches no Triton kernel."
        return Reason.NO_KERNEL, why_not
    if not launches.kernels:
        return Reason.NO_KERNEL, f"{BLOCK_TABLE_CLASS}.{METHOD} launches no Triton kernel."
    return None


def _refuse_wrong_slots(run: Run, block_table: SourceFile, launches: Launches) -> None:
    """Refuse a kernel that does not do what it is for; the warm-up would compile it all the same.

    Before any edit: the files are parsed already.
    """
    tables = Tables.of(run.sources, block_table)
    if edits.KERNEL not in run.wanted or tables.groups is None or tables.one is None:
        return
    classes = Classes.of(run.sources, tables.groups, tables.one, launches.kernels)
    found = wrong_slots(classes) if classes is not None else None
    if found is not None:
        kernel = launches.kernels[0]
        raise Refusal(
            Reason.HARMFUL,
            f"{found}; mend {METHOD} or its kernel, or leave the edit out with --skip kernel",
            kernel.file.name,
            line_of(kernel.file.module, kernel.definitions[0]),
        )


def _warmup(run: Run, block_table: SourceFile, launches: Launches) -> None:
    sources = run.sources
    _refuse_renamed_tables(sources)
    name = sources.checkout.name(warmup_edit.MODULE)
    tables = Tables.of(sources, block_table)
    there = _warmup_there(sources)
    file = sources.read(warmup_edit.MODULE) or (there.file if there is not None else None)
    file = warmup_edit.required(file, name, warmup.FUNCTION)
    classes = _classes(sources, tables, launches)
    run.take(warmup.edit(file, classes, tables, there, replace=run.replace), file)


def _classes(sources: Sources, tables: Tables, launches: Launches) -> Classes:
    check_classes(tables)
    assert tables.groups is not None
    assert tables.one is not None
    found = Classes.of(sources, tables.groups, tables.one, launches.kernels)
    if found is None:
        raise Refusal(
            Reason.UNPARSABLE,
            "the running Python does not accept the file's syntax; run this tool with a newer one",
            tables.file.name,
        )
    return found


def _warmup_there(sources: Sources) -> FollowedWarmup | None:
    """Our function as the tree has it: what the worker calls, else what the module defines."""
    worker_file = sources.read(WORKER)
    if worker_file is not None:
        with suppress(Refusal):
            calls = worker_edit.existing_calls(worker_file, warmup.CALL, sources)
            site = calls.reached if calls is not None else None
            if site is not None and site.reached is not None:
                assert isinstance(site.reached.node, ast.FunctionDef)
                return FollowedWarmup(site.reached.file, site.reached.node, site.takes_worker)
    file = sources.read(warmup_edit.MODULE)
    if file is None or warmup.FUNCTION.encode() not in file.data:
        return None
    from codemods.engine.bound import Bound, Unbound, bound  # most trees have no such name

    found = bound(sources, file, warmup.FUNCTION)
    if isinstance(found, Bound) and isinstance(found.node, ast.FunctionDef):
        return FollowedWarmup(found.file, found.node)
    if isinstance(found, Unbound) and found.nowhere:
        return None
    why = found.why if isinstance(found, Unbound) else "it is no function"
    raise Refusal(
        Reason.AMBIGUOUS,
        f"expected {warmup.FUNCTION} to be a function or not there, found that {why}; fix or "
        "remove it",
        file.name,
    )


_TABLES_OF_THE_BATCH = re.compile(rb"\.block_table\b")


def _refuse_renamed_tables(sources: Sources) -> None:
    """Refuse a runner that nowhere has its tables under upstream's name; it is not parsed."""
    runner = sources.read("v1/worker/gpu_model_runner.py")
    if runner is not None and not _TABLES_OF_THE_BATCH.search(runner.data):
        raise Refusal(
            Reason.SIGNATURE_CHANGED,
            "expected the runner to have its tables as input_batch.block_table, found no such "
            "attribute; the warm-up has to be written for this tree",
            runner.name,
        )


def _unit_tests(run: Run, block_table: SourceFile, launches: Launches) -> None:
    sources = run.sources
    file = unit_tests_edit.find(sources)
    if file is not None and _has_other_warmup(run, block_table):
        run.add(
            Outcome(
                edits.UNIT_TESTS,
                Status.NOT_NEEDED,
                Reason.ALREADY_PRESENT,
                "the tree's warm-up is not the one that these tests are for",
                file.name,
            )
        )
        return
    covered = (
        [
            (unit_tests_edit.module_name(sources.checkout, one.file.name), one.name)
            for one in launches.kernels
            if names.functions(one.file.module, one.name)
            and any(p.name.value == PARAMETER for p in parameters(one.definitions[0]))
        ]
        if run.in_force(edits.KERNEL)
        else []
    )
    edited = unit_tests.edit(
        file,
        unit_tests_edit.package_name(file, sources.checkout) if file is not None else "",
        covered,
        warmup=run.in_force(edits.WARMUP),
    )
    run.take(edited, file)


def _has_other_warmup(run: Run, block_table: SourceFile) -> bool:
    if not run.is_present(edits.WARMUP):
        return False
    sources = run.sources
    file = sources.read(warmup_edit.MODULE)
    return file is None or not warmup.is_ours(file, Tables.of(sources, block_table))


def _why(run: Run, launches: Launches) -> str:
    there = [edit for edit in edits.REPORTED if run.is_present(edit)]
    if edits.WARMUP in there and edits.WORKER in there:
        listed = edits.KERNEL in there
        return why.of_fixed(warmup.FUNCTION) if listed else why.of_unlisted(warmup.FUNCTION)
    return why.of_missing(
        run.sources,
        launches,
        warmup.FUNCTION,
        listed=edits.KERNEL in there,
        is_there=edits.WARMUP in there,
    )


RECIPE = Recipe(
    name="slot-mapping",
    about=About(
        title="Slot-mapping warm-up",
        subject="Warm up the V1 slot-mapping kernel before the first request",
        origin="https://github.com/vllm-project/vllm/pull/42165",
    ),
    edits=edits.REPORTED,
    writes=edits.WRITTEN,
    means={
        Reason.SUPERSEDED_UPSTREAM: Verdict.SUPERSEDED,
        Reason.REMOVED: Verdict.SUPERSEDED,
        Reason.NO_KERNEL: Verdict.NOT_AFFECTED,
    },
    reads=(
        r"(?:\w+/)*jit_monitor\.py",
        r"model_executor/warmup/\w+\.py",
        r"triton_utils/\w+\.py",
        r"utils/(?:__init__|math_utils)\.py",
        r"v1/utils\.py",
        r"v1/attention/backends/utils\.py",
        r"v1/worker/\w+\.py",
        r"v1/worker/gpu/(?:__init__|block_table|warmup)\.py",
    ),
    reads_tests=(
        r"tests/(?:v1/(?:worker/)?)?(?:__init__|conftest)\.py",
        r"tests/v1/worker/test_gpu_model_runner\.py",
    ),
    decide=decide,
    kernels={KERNEL: PARAMETER},
)
