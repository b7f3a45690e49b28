"""The slot-mapping recipe: runs the four edits over a checkout and says what each came to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from codemods.checkout import BLOCK_TABLE, WORKER, Checkout
from codemods.outcome import EditName, FileChange, Outcome, Reason, Status
from codemods.slot_mapping import kernel, unit_tests, unlaunched, upstream, warmup, worker
from codemods.slot_mapping.block_tables import Tables
from codemods.slot_mapping.launches import (
    Launches,
    find,
)
from codemods.slot_mapping.source_file import Edited, Refusal, SourceFile, Sources
from codemods.slot_mapping.warm_up_method import find_method
from codemods.transforms import names, source
from codemods.transforms.do_not_specialize import parameters


@dataclass
class Result:
    """What the edits came to so far; `after` maps a file's name to its old and new bytes.

    Edits that are not wanted are looked at too, since others rest on what the tree has of them, but
    change nothing.
    """

    wanted: frozenset[EditName]
    outcomes: list[Outcome] = field(default_factory=list)
    present: set[EditName] = field(default_factory=set)
    after: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    edited: dict[str, list[EditName]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        if outcome.status is Status.PRESENT:
            self.present.add(outcome.edit)
        if outcome.status is Status.REFUSED:
            self.outcomes = [one for one in self.outcomes if one.edit is not outcome.edit]
        known = {one.edit for one in self.outcomes}
        if outcome.edit in self.wanted and outcome.edit not in known:
            self.outcomes.append(outcome)

    def take(self, edited: Edited, file: SourceFile | None) -> None:
        """Keep an edit's outcome and, where it is wanted, the bytes that it makes of the file."""
        if file is None or edited.module is None or edited.outcome.edit not in self.wanted:
            self.add(edited.outcome)
            return
        after = edited.module.bytes
        if source.loses_white_space(file.data, after):
            raise Refusal(
                Reason.UNPARSABLE, "parsing it would change white space outside the edit", file.name
            )
        self.after[file.name] = (file.data, after)
        self.edited.setdefault(file.name, []).append(edited.outcome.edit)
        self.add(edited.outcome_on_its_line(file.data, after))

    def in_force(self, edit: EditName) -> bool:
        """Whether an edit's effect is in the tree, or will be."""
        return edit in self.present or any(
            one.edit is edit and one.status is Status.EDIT for one in self.outcomes
        )

    def changes(self) -> tuple[FileChange, ...]:
        return tuple(
            FileChange(name, before, after, tuple(self.edited[name]))
            for name, (before, after) in sorted(self.after.items())
        )


def run(checkout: Checkout, wanted: frozenset[EditName]) -> Result:
    """Decide every wanted edit; nothing is written."""
    result = Result(wanted)
    sources = Sources(checkout)
    try:
        with _not_too_deep(checkout.name(BLOCK_TABLE)):
            launches, block_table = _launches(sources)
    except Refusal as refusal:
        for edit in EditName:
            result.add(refusal.outcome(edit))
        return result
    nothing = _nothing_to_do(launches, block_table)
    if nothing is not None or block_table is None:
        reason, detail = nothing or (Reason.NO_KERNEL, "")
        file = block_table.name if block_table else None
        for edit in EditName:
            result.add(Outcome(edit, Status.NOT_NEEDED, reason, detail, file))
        return result

    steps: dict[EditName, Callable[[], None]] = {
        EditName.KERNEL: lambda: _kernel(result, launches),
        EditName.WARMUP: lambda: _warmup(result, sources, block_table, launches),
        EditName.WORKER: lambda: _worker(result, sources),
        EditName.UNIT_TESTS: lambda: _unit_tests(result, sources, block_table, launches),
    }
    files = {
        EditName.KERNEL: launches.kernels[0].file.name,
        EditName.WARMUP: checkout.name(warmup.MODULE),
        EditName.WORKER: checkout.name(WORKER),
        EditName.UNIT_TESTS: unit_tests.EXPECTED,
    }
    for edit, step in steps.items():
        try:
            with _not_too_deep(files[edit]):
                step()
        except Refusal as refusal:
            result.add(refusal.outcome(edit))
    return result


@contextmanager
def _not_too_deep(name: str) -> Iterator[None]:
    """What the parser takes can still be too deep for LibCST's own walk over it."""
    try:
        yield
    except RecursionError:
        raise Refusal(Reason.UNPARSABLE, "it is nested too deeply", name) from None


def _launches(sources: Sources) -> tuple[Launches, SourceFile | None]:
    block_table = sources.read(BLOCK_TABLE)
    if block_table is None:
        return Launches(()), None
    launches = find(sources, block_table)
    unlaunched.refuse_two_classes(launches)
    if not launches.kernels and not launches.kernel_class:
        unlaunched.refuse(launches, block_table, sources.checkout)
    return launches, block_table


def _nothing_to_do(launches: Launches, block_table: SourceFile | None) -> tuple[Reason, str] | None:
    if block_table is None:
        return Reason.NO_KERNEL, "the worker has no block table module beside it"
    if launches.kernel_class is not None:
        return (
            Reason.SUPERSEDED_UPSTREAM,
            f"{launches.kernel_class} registers its compile keys for warm-up (vLLM 0.29 and later)",
        )
    if not launches.kernels:
        return (
            Reason.NO_KERNEL,
            "BlockTable.compute_slot_mapping launches no Triton kernel",
        )
    return None


def _kernel(result: Result, launches: Launches) -> None:
    files = {one.file.name: one.file for one in launches.kernels}
    for name, edited in kernel.edit(launches.kernels, launches.unresolved).items():
        result.take(edited, files.get(name))


def _warmup(result: Result, sources: Sources, block_table: SourceFile, launches: Launches) -> None:
    elsewhere = _called_from_elsewhere(sources)
    if elsewhere is not None:
        result.add(elsewhere)
        return
    _refuse_renamed_tables(sources)
    file = sources.read(warmup.MODULE)
    others = upstream.other_warmups(sources.checkout)
    name = sources.checkout.name(warmup.MODULE)
    tables = Tables.of(sources, block_table)
    edited = warmup.edit(name, file, tables, len(launches.kernels) > 1, others)
    result.take(edited, file)


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


def _called_from_elsewhere(sources: Sources) -> Outcome | None:
    """The outcome where the worker calls our function out of another module than ours."""
    file = sources.read(WORKER)
    if file is None or warmup.FUNCTION.encode() not in file.data:
        return None
    try:
        module = worker.imported_from(file)
    except Refusal:
        return None
    if module is None or f".{module}".endswith(f".{worker.WARMUP_MODULE}"):
        return None
    return Outcome(
        EditName.WARMUP,
        Status.PRESENT,
        Reason.ALREADY_PRESENT,
        f"the worker takes {warmup.FUNCTION} from {module}",
        file.name,
    )


def _worker(result: Result, sources: Sources) -> None:
    file = sources.read(WORKER)
    if file is None:
        raise Refusal(Reason.NO_ANCHOR, f"there is no {WORKER}")
    there = result.in_force(EditName.WARMUP) or _defines_function(sources)
    result.take(worker.edit(file, there), file)


def _defines_function(sources: Sources) -> bool:
    file = sources.read(warmup.MODULE)
    return file is not None and bool(names.functions(file.module, warmup.FUNCTION))


def _unit_tests(
    result: Result, sources: Sources, block_table: SourceFile, launches: Launches
) -> None:
    file = unit_tests.test_module(sources)
    if file is not None and _fixed_by_another_hand(result, sources, block_table):
        result.add(
            Outcome(
                EditName.UNIT_TESTS,
                Status.NOT_NEEDED,
                Reason.ALREADY_PRESENT,
                "the tree's warm-up is not the one that these tests are for",
                file.name,
            )
        )
        return
    covered = (
        [
            (_module_name(sources.checkout, one.file.name), one.name)
            for one in launches.kernels
            if names.functions(one.file.module, one.name)
            and any(p.name.value == kernel.PARAMETER for p in parameters(one.definitions[0]))
        ]
        if result.in_force(EditName.KERNEL)
        else []
    )
    edited = unit_tests.edit(
        file,
        sources.checkout.package_name,
        covered,
        warmup=result.in_force(EditName.WARMUP),
        worker=_worker_method(sources) if result.in_force(EditName.WORKER) else None,
    )
    result.take(edited, file)


def _fixed_by_another_hand(result: Result, sources: Sources, block_table: SourceFile) -> bool:
    if EditName.WARMUP not in result.present:
        return False
    file = sources.read(warmup.MODULE)
    return file is None or not warmup.is_ours(file, Tables.of(sources, block_table))


def _worker_method(sources: Sources) -> str | None:
    file = sources.read(WORKER)
    if file is None:
        return None
    method = find_method(file)
    return f"{method.owner.name.value}.{method.function.name.value}"


def _module_name(checkout: Checkout, name: str) -> str:
    inside = name if checkout.package == "." else name.removeprefix(f"{checkout.package}/")
    return inside.removesuffix(".py").replace("/", ".")
