"""Whether a warm-up launches every kernel that requests can launch, and leaves the tables alone.

The warm-up and `compute_slot_mapping` are followed, not run: over what an engine's settings may be,
over any number of requests and tokens, and over what earlier calls left in the tables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from codemods.engine.sources import SourceFile
from codemods.recipes.slot_mapping.facts.names import METHOD
from codemods.recipes.slot_mapping.facts.simulated_tables import (
    RUNNER,
    WORKER,
    Classes,
    Launch,
    Limits,
    Live,
    SimulatedTables,
)
from codemods.recipes.warm_up.evaluate import (
    Follower,
    NoAttribute,
    Raised,
    TooComplex,
    Way,
    for_each_setting,
    ways,
)
from codemods.recipes.warm_up.values import Function, Known, Tensor, Value, Varying

# A single request or a single token in a batch; else there is room for more than a warm-up uses.
_NARROW = (Limits(requests=1), Limits(requests=1, tokens=1))
# When a warm-up is called: where requests are, and whether the launch raises.
_MOMENTS = (
    (Live.NOWHERE, False),
    (Live.NOWHERE, True),
    (Live.FIRST_ROW, False),
    (Live.ANOTHER_ROW, False),
)


@dataclass(eq=False)
class FollowedWarmup:
    """A warm-up function; `takes_worker` where it is given the worker and not its runner."""

    file: SourceFile
    node: ast.FunctionDef
    takes_worker: bool = False


def not_reached(classes: Classes, warmup: FollowedWarmup) -> str | None:
    """What the warm-up does not reach, as a sentence's part; None where it reaches all."""
    warmed: list[SimulatedTables] = []
    try:
        for limits in (Limits(), *_NARROW):
            for found in for_each_setting(partial(_missed, classes, warmup, limits, warmed)):
                if found is not None:
                    return found
            if not any(tables.asks_for_limits for tables in warmed):
                break  # it does the same in every engine
    except TooComplex as error:
        return f"the warm-up cannot be followed: {error}"
    return None


def harm(classes: Classes, warmup: FollowedWarmup) -> str | None:
    """What the warm-up does to the tables that it must not, as a sentence's part."""
    try:
        for live, raises in _MOMENTS:
            for found in for_each_setting(partial(_harm, classes, warmup, live, raises)):
                if found is not None:
                    return found
    except TooComplex as error:
        return f"the warm-up cannot be followed: {error}"
    return None


@dataclass(eq=False)
class _Trace:
    """What one way through launched, and how it got there."""

    launches: frozenset[Launch]
    way: Way
    tables: SimulatedTables


def _missed(
    classes: Classes,
    warmup: FollowedWarmup,
    limits: Limits,
    followed: list[SimulatedTables],
    settings: Mapping[str, bool],
) -> str | None:
    entered: set[str] = set()
    requests = [*_requests(classes, limits, settings, entered)]
    for trace in requests:
        for fault in trace.tables.faults:
            return fault
    start = SimulatedTables(classes, limits=limits, entered=frozenset(entered))
    warmed = [*_warmed(start, warmup, settings)]
    followed += [trace.tables for trace in warmed]
    for trace in warmed:
        for fault in trace.tables.faults:
            return fault
    reached = frozenset.intersection(*(trace.launches for trace in warmed))
    for trace in requests:
        missing = sorted(trace.launches - reached, key=lambda launch: launch.line)
        if missing:
            return _describe(missing[0], trace, warmed[0])
    return None


def _requests(
    classes: Classes, limits: Limits, settings: Mapping[str, bool], entered: set[str]
) -> Iterator[_Trace]:
    """A request's call of the tables, whatever its batch and whatever came before it."""
    tokens: Value = Known(1) if limits.tokens == 1 else Varying("num_tokens")
    requests: Value = Known(1) if limits.requests == 1 else Varying("num_reqs")
    given = (
        requests,
        Tensor("query_start_loc", Varying("len(query_start_loc)")),
        Tensor("positions", tokens),
    )

    def follow(way: Way) -> _Trace:
        tables = SimulatedTables(classes)
        tables.follower = Follower(tables, way)
        method = tables.groups.method(METHOD) or tables.table.method(METHOD)
        with suppress(Raised):
            if method is not None:
                tables.follower.call(method, (given, {}))
        entered.update(tables.follower.entered)
        return _Trace(frozenset(tables.launches), way, tables)

    return ways(follow, settings)


def _warmed(
    start: SimulatedTables, warmup: FollowedWarmup, settings: Mapping[str, bool]
) -> Iterator[_Trace]:
    def follow(way: Way) -> _Trace:
        tables = replace(start, launches=set(), rows=set(), on_device=set(), faults=[])
        tables.follower = Follower(tables, way)
        function = Function(warmup.file, warmup.node)
        with suppress(Raised), _asked_for(tables):
            tables.follower.call(function, ((WORKER if warmup.takes_worker else RUNNER,), {}))
        return _Trace(frozenset(tables.launches), way, tables)

    return ways(follow, settings)


@contextmanager
def _asked_for(tables: SimulatedTables) -> Iterator[None]:
    try:
        yield
    except NoAttribute as error:
        tables.faults.append(f"the warm-up asks for {error}, which the tree does not have")


def _describe(launch: Launch, request: _Trace, warmed: _Trace) -> str:
    asked = {**request.way.asked, **dict(request.way.taken)}
    only_warmed = {k: v for k, v in warmed.way.asked.items() if k not in asked}
    where = [*only_warmed.items()][-1:] or [*request.way.taken][-1:]
    constants = ", ".join(f"{name}={value}" for name, value in sorted(launch.constants))
    condition = "".join(f" where `{test}` is {str(outcome).lower()}" for test, outcome in where)
    if constants and not where:
        condition = f" with {constants}"
    return f"the warm-up does not reach {launch.kernel}, launched on line {launch.line}{condition}"


def _harm(
    classes: Classes, warmup: FollowedWarmup, live: Live, raises: bool, settings: Mapping[str, bool]
) -> str | None:
    is_idle = live is Live.NOWHERE
    start = SimulatedTables(classes, live=live, raises=raises, entered=frozenset({METHOD}))
    for trace in _warmed(start, warmup, settings):
        tables = trace.tables
        if tables.changed_live_rows:
            return (
                "the warm-up adds and clears a row whatever is in use: run again on a live engine, "
                "as elastic expert parallelism does, it takes a request's blocks away"
            )
        if tables.launched_over_live_rows:
            return "the warm-up launches the kernel whatever is in use, over the requests' slots"
        when = " when the launch raises" if raises else ""
        if is_idle and tables.rows:
            return f"the warm-up leaves row {min(tables.rows)} in use{when}"
        if is_idle and tables.on_device:
            return (
                f"the warm-up leaves the block of row {min(tables.on_device)} on the device{when}"
            )
        for effect in tables.effects.left.values():
            return effect
        if not raises and tables.slots_left:
            return "the warm-up leaves slots of a block in the slot mapping"
    return None
