"""Where and with what a part was measured."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path

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


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
