"""What was seen of one tree when it ran."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Record:
    """Each dict is by start, which is named by its settings, such as `v1 last pooling`.

    `late`: kernels that requests compile, or that are compiled when the monitor is active.
    `tables`: what a start changed in block tables, of no request or of a live one.
    `calls`: what the worker's method called, in its order. `error`: why the tree did not start;
    `unserved`: why it did, and a request failed.
    """

    late: dict[str, list[str]] = field(default_factory=dict)
    v2_launches: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=dict)
    error: str = ""
    unserved: str = ""
