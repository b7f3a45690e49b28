"""The `state` proof, in its own process: the real warm-up leaves the engine as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.triton_binder import Launch, observed
from codemods.prove.unknown import Choices, NotKnownError, every_way
from codemods.recipes.slot_mapping.proofs.call_site import CallSite
from codemods.recipes.slot_mapping.proofs.engines import (
    Buffers,
    Engine,
    buffers,
    build,
    calls_shown,
    capacity,
    device_table,
    runner,
    slot_mapping,
    supported,
)
from codemods.recipes.slot_mapping.proofs.job import Job
from codemods.recipes.slot_mapping.proofs.loading import Function, Loaded, loaded
from codemods.recipes.slot_mapping.proofs.proof_process import serve
from codemods.recipes.slot_mapping.proofs.snapshot import (
    differences,
    snapshot,
    table_attributes,
)
from codemods.recipes.slot_mapping.proofs.warming import as_on_a_gpu, choices_of

NAME = "state"
ROWS = 6
SLOT = 7_000_001  # in no block of a small engine's tables
small_engine = partial(Engine, max_model_len=4096, max_num_reqs=ROWS, max_num_tokens=64)
ENGINES = (
    small_engine(((16, 16),)),
    small_engine(((32, 32), (64, 64))),
    small_engine(((32, 16), (64, 64))),
    small_engine(((528, 16), (16, 16)), dcp=(2, 1)),
)


@dataclass(frozen=True)
class Situation:
    """Which rows live requests own, and whether rows were used and given back before."""

    description: str
    live: tuple[int, ...] = ()
    used: bool = False


SITUATIONS = (
    Situation("no row in use"),
    Situation("no row in use any more", used=True),
    Situation("row 0 in use", (0,)),
    Situation("some rows in use but not row 0", (2, 5), used=True),
    Situation("all rows in use", tuple(range(ROWS))),
)


class LaunchFailedError(RuntimeError):
    """What a launch raises when the proof wants it to."""


@dataclass
class Launches:
    """Counts launches, and keeps none of what they pass; each raises where `fail` is set."""

    fail: bool
    count: int = 0

    def __call__(self, _: Launch) -> None:
        self.count += 1
        if self.fail:
            raise LaunchFailedError("the launch fails, as the proof asked")


@dataclass(frozen=True)
class Run:
    """One call of the warm-up: the engine's state, whether launches raise, and on what tree."""

    tree: Loaded
    warmup: Function
    engine: Engine
    site: CallSite
    situation: Situation
    fail: bool
    pad: int

    def __call__(self, choices: Choices) -> tuple[str | None, int]:
        """What the call changed, None for nothing, and how often it launched."""
        tables, inputs = build(self.tree, self.engine), buffers(self.engine, self.site)
        _fill(tables, inputs, self.engine, self.situation)
        launches, beyond = Launches(self.fail), list[str]()
        longest = capacity(tables, self.engine)

        def check(_: int | None, arguments: Callable[[], dict[str, Any]]) -> None:
            given = arguments()
            if {"num_reqs", "query_start_loc", "positions"} <= given.keys():
                beyond.extend(_beyond(longest=longest, **given))
            if beyond:
                raise LaunchFailedError(beyond[0])

        before = snapshot(tables, inputs)
        with ExitStack() as stack:
            gpu = None
            if self.engine.device == "cpu":
                gpu = stack.enter_context(as_on_a_gpu(tables, inputs, choices))
            stack.enter_context(calls_shown(tables, check))
            stack.enter_context(observed(launches, gpu.paused if gpu else nullcontext))
            made = runner(
                self.warmup, tables, inputs, choices,
                device=gpu.device if gpu else None, num_reqs=len(self.situation.live),
            )  # fmt: skip
            held = _held(made)
            with self.warmup.asking(choices), suppress(LaunchFailedError):
                self.warmup.call(made)
        written = [f"writes to {path}" for path in choices.written]
        kept = gpu.left_behind() if gpu else []
        left = [f"leaves {sum(map(_bytes, kept))} bytes of tensors behind"] if kept else []
        own = frozenset(self._own_attributes() if self._changes(before, tables) else ())
        found = differences(before, snapshot(tables, inputs), self.engine, self.pad, own)
        everything = (*beyond, *written, *_newly_held(held, made), *left, *found)
        return next(iter(everything), None), launches.count

    def _changes(self, before: Any, tables: Any) -> bool:
        return bool(before.attributes != table_attributes(tables))

    def _own_attributes(self) -> Iterator[str]:
        """Attributes of the tables that a request's own calls change too."""
        tables, inputs = build(self.tree, self.engine), buffers(self.engine, self.site)
        before = table_attributes(tables)
        with observed(lambda _: None):
            for _ in range(2):
                inputs.call(tables, 1, 1)
        after = table_attributes(tables)
        yield from (name for name, value in after.items() if before.get(name) != value)


def prove(job: Job) -> Proof:
    if job.after.warmup is None:
        raise CannotRunError("the tree does not have this tool's warm-up")
    figures: dict[str, int | float | str] = {"engines": 0, "runs": 0, "launches": 0}
    with loaded(job.after) as tree:
        try:
            complaint = next(filter(None, _complaints(tree, job, figures)), None)
        except NotKnownError as reason:
            complaint = f"not proved: {reason} (in the warm-up)"
    if complaint is not None:
        return failed(NAME, complaint, **figures)
    if not figures["launches"]:
        return failed(NAME, "the warm-up launches no kernel on an idle engine", **figures)
    return passed(
        NAME,
        f"the warm-up leaves block tables, slot mappings, the runner's buffers, memory, settings "
        f"and random states as they were, in {figures['engines']} engines with no, some and all "
        "rows in use, also when a launch fails",
        **figures,
    )


def _complaints(
    tree: Loaded, job: Job, figures: dict[str, int | float | str]
) -> Iterator[str | None]:
    """What each run changed, the engine and its state in the same sentence."""
    warmup = tree.warmup
    assert warmup is not None
    on_device = [replace(engine, device=job.device) for engine in ENGINES]
    for engine in (engine for engine in on_device if supported(tree, engine)):
        figures["engines"] = int(figures["engines"]) + 1
        for situation in SITUATIONS:
            for fail in (False, True):
                run = Run(
                    tree, warmup, engine, job.call_sites[0], situation, fail, job.after.pad_slot_id
                )
                for where, (changed, launches) in every_way(run, choices_of(warmup, engine)):
                    figures["runs"] = int(figures["runs"]) + 1
                    figures["launches"] = int(figures["launches"]) + launches
                    yield changed and _sentence(run, where, changed)


def _sentence(run: Run, where: str, changed: str) -> str:
    when = ", the launch raising" if run.fail else ""
    asked = f", where {where}" if where else ""
    return f"with {run.situation.description}{when}, the warm-up {changed} ({run.engine}{asked})"


def _fill(tables: Any, inputs: Buffers, engine: Engine, situation: Situation) -> None:
    """Give rows blocks of their own; one block of row 0 is on the host only, as between steps.

    The inputs are those of a batch before, of two tokens a request.
    """

    def ids(row: int, count: int) -> tuple[list[int], ...]:
        return tuple([1000 * row + 10 * n + 7 for n in range(count)] for _ in engine.groups)

    if situation.used:
        for row in range(ROWS):
            tables.add_row(ids(row + 50, 1), row)
        tables.commit_block_table(ROWS)
        for row in range(ROWS):
            tables.clear_row(row)
    live = situation.live
    for row in live:
        tables.add_row(ids(row + 1, 1), row)
    if live:
        tables.commit_block_table(ROWS)
        for table in tables.block_tables:
            if table.num_blocks_per_row[live[0]] < device_table(table).shape[1]:
                table.append_row([907], live[0])
    for table in tables.block_tables:
        slot_mapping(table).fill_(SLOT)
    inputs.positions.fill_(3)
    for row in range(len(inputs.query_start_loc)):
        inputs.query_start_loc[row] = 2 * row
    inputs.query_start_loc_buffer.cpu.copy_(inputs.query_start_loc)


def _beyond(
    num_reqs: int, query_start_loc: Any, positions: Any, longest: int, **_: Any
) -> Iterator[str]:
    """What a launch would read that is not there, as the end of a sentence."""
    if len(query_start_loc) < num_reqs + 1:
        yield (
            f"passes a query_start_loc of {len(query_start_loc)} for {num_reqs} requests, "
            f"which need {num_reqs + 1}"
        )
        return
    starts = query_start_loc[: num_reqs + 1].tolist()
    if starts != sorted(starts) or starts[0] < 0 or starts[-1] > len(positions):
        yield f"passes query_start_loc {starts} for {len(positions)} positions"
    elif any(not 0 <= place < longest for place in positions[: starts[-1]].tolist()):
        yield f"passes a position that no request of {longest} tokens has"


def _held(made: Any) -> dict[tuple[str, str], int]:
    """What the runner and its batch hold, by name: the identity of each."""
    model_runner = vars(made).get("model_runner", made)
    owners = {"model_runner": model_runner, "model_runner.input_batch": model_runner.input_batch}
    return {
        (owner, name): id(value)
        for owner, thing in owners.items()
        for name, value in vars(thing).items()
    }


def _newly_held(before: dict[tuple[str, str], int], made: Any) -> Iterator[str]:
    for (owner, name), value in _held(made).items():
        if before.get((owner, name)) != value:
            yield f"sets {owner}.{name}"


def _bytes(tensor: Any) -> int:
    return int(tensor.untyped_storage().nbytes())


if __name__ == "__main__":
    serve(NAME, prove)
