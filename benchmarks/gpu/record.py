"""Results as they come: one JSON object a line, kept between calls and copied out at once."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any


class Record:
    """Appends to `kept` (which lasts on the machine) and to `out` (which is brought back)."""

    def __init__(self, kept: Path, out: Path, about: dict[str, Any]) -> None:
        self.kept, self.out, self.about = kept, out, about
        out.parent.mkdir(parents=True, exist_ok=True)
        kept.parent.mkdir(parents=True, exist_ok=True)

    def add(self, result: dict[str, Any]) -> None:
        line = json.dumps(result | {"about": self.about}) + "\n"
        for path in (self.kept, self.out):
            with path.open("a") as file:
                file.write(line)

    def done(self) -> set[str]:
        """Names of the results that hold no error."""
        return {r["name"] for r in read(self.kept) if "error" not in r}


def read(path: Path) -> list[dict[str, Any]]:
    """Every result in `path`, the last of each name, in the order of their first appearance."""
    found: dict[str, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            result = json.loads(line)
            found[result["name"]] = result
    return list(found.values())


def machine(python: str, commit: str) -> dict[str, Any]:
    """What every result says of where it was measured."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    versions = "from importlib.metadata import version as v; print(v('torch'), v('triton'))"
    gpus = [line.split(", ") for line in output(query).splitlines()]
    torch, _, triton = output([python, "-c", versions]).strip().rpartition("\n")[2].partition(" ")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "gpu": gpus[0][0] if gpus else None,
        "gpus": len(gpus),
        "driver": gpus[0][1] if gpus else None,
        "torch": torch or None,
        "triton": triton or None,
        "commit": commit,
    }


def output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
