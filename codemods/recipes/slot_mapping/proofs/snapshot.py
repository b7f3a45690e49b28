"""All that a warm-up must leave as it was, and what differs between two snapshots of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from codemods.prove import process_settings
from codemods.prove.random_states import moved, random_states
from codemods.recipes.slot_mapping.proofs.engines import (
    Buffers,
    Engine,
    device_table,
    host_table,
    slot_mapping,
)


@dataclass(frozen=True)
class Snapshot:
    """Block tables, slot mappings, the runner's inputs, and the process's random states, settings.

    `pointers` are of buffers that CUDA graphs may hold; `attributes` are the tables' own numbers.
    """

    counts: tuple[Any, ...]
    host: tuple[Any, ...]
    device: tuple[Any, ...]
    slots: tuple[Any, ...]
    inputs: dict[str, Any]
    pointers: tuple[int, ...]
    attributes: dict[str, object]
    random: tuple[object, ...]
    settings: dict[str, object]


def snapshot(tables: Any, inputs: Buffers) -> Snapshot:
    groups = tables.block_tables
    return Snapshot(
        counts=tuple(np.array(table.num_blocks_per_row, copy=True) for table in groups),
        host=tuple(_content(host_table(table)) for table in groups),
        device=tuple(_content(device_table(table)) for table in groups),
        slots=tuple(_content(slot_mapping(table)) for table in groups),
        inputs={
            "query_start_loc": _content(inputs.query_start_loc),
            "query_start_loc on the host": _content(inputs.query_start_loc_buffer.cpu),
            "positions": _content(inputs.positions),
        },
        pointers=tuple(
            find(table).data_ptr()
            for table in groups
            for find in (host_table, device_table, slot_mapping)
        ),
        attributes=table_attributes(tables),
        random=random_states(device_table(groups[0]).device),
        settings=process_settings.process_settings(),
    )


def table_attributes(tables: Any) -> dict[str, object]:
    """Plain values that the tables hold, by group and name."""
    return {
        f"{name} of group {group}": value
        for group, table in enumerate(tables.block_tables)
        for name, value in vars(table).items()
        if isinstance(value, (int, float, str, type(None)))
    }


def differences(
    before: Snapshot, after: Snapshot, engine: Engine, pad: int, own: frozenset[str]
) -> Iterator[str]:
    """What a run changed, each as the end of a sentence.

    A cell beyond its row's count belongs to no request; it may be set to 0, the null block. A slot
    may become padding or one of the null block, which dummy runs may write to. The attributes `own`
    are those that a request changes too.
    """
    if before.pointers != after.pointers:
        yield "replaces a buffer that CUDA graphs point to"
    for group, (old, new) in enumerate(zip(before.counts, after.counts, strict=True)):
        for row in np.flatnonzero(old != new):
            yield f"changes the block count of row {row}, group {group}: {old[row]} to {new[row]}"
    yield from _cells(before, after)
    yield from _slots(before, after, engine, pad)
    for name, values in before.inputs.items():
        if not np.array_equal(values, after.inputs[name]):
            yield f"writes to the model runner's {name}"
    for name, value in after.attributes.items():
        if name not in own and before.attributes.get(name) != value:
            yield f"changes {name} from {before.attributes.get(name)} to {value}"
    yield from moved(before.random, after.random)
    yield from process_settings.changed(before.settings, after.settings)


def _cells(before: Snapshot, after: Snapshot) -> Iterator[str]:
    for place in ("host", "device"):
        both = zip(getattr(before, place), getattr(after, place), before.counts, strict=True)
        for group, (old, new, counts) in enumerate(both):
            owned = np.arange(old.shape[1])[None, :] < np.asarray(counts)[:, None]
            for row, column in np.argwhere((old != new) & (owned | (new != 0))):
                yield (
                    f"changes block {column} of row {row}, group {group}, on the {place}: "
                    f"{old[row, column]} to {new[row, column]}"
                )


def _slots(before: Snapshot, after: Snapshot, engine: Engine, pad: int) -> Iterator[str]:
    both = zip(before.slots, after.slots, engine.groups, strict=True)
    for group, (old, new, (_, size)) in enumerate(both):
        null = (new == pad) | ((new >= 0) & (new < size))
        for place in np.flatnonzero((old != new) & ~null):
            yield (
                f"leaves slot {new[place]}, of block {new[place] // size}, at token {place} of the "
                f"slot mapping of group {group}, where a dummy run would write"
            )


def _content(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy().copy()
