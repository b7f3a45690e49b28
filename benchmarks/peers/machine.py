"""Where and with what a part was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

from . import contenders, project


def about(programs: Path) -> dict[str, object]:
    """For the JSON: the kind of machine (no name of it), each program's version, the day."""
    return {
        "date": date.today().isoformat(),
        "commit": project.commit(),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu(),
        "python": platform.python_version(),
        "versions": contenders.versions(programs),
    }


@contextmanager
def watched(found: dict[str, Any]) -> Iterator[None]:
    """Put into `found` how much of one core other processes used meanwhile; 1 is a whole core."""
    start, everybody, own = perf_counter(), _busy(), _own()
    yield
    seconds = perf_counter() - start
    others = (_busy() - everybody) - (_own() - own)
    found["others"] = round(max(0.0, others) / seconds, 3)


def _busy() -> float:
    """Seconds of processor that the machine has spent on anything."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    """Seconds of processor of this process and of those it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
