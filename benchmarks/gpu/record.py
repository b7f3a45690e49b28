"""Results as they come: one JSON object a line, kept on the machine and copied out at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Record:
    """Appends to `kept` (which lasts on the machine) and to `out` (which is brought back).

    `out` begins as a copy of `kept`: what comes back last holds everything.
    """

    def __init__(self, kept: Path, out: Path, about: dict[str, Any]) -> None:
        self.kept, self.out, self.about = kept, out, about
        for path in (kept, out):
            path.parent.mkdir(parents=True, exist_ok=True)
        if kept != out and kept.exists():
            out.write_bytes(kept.read_bytes())

    def add(self, result: dict[str, Any]) -> None:
        line = json.dumps(result | {"about": self.about}) + "\n"
        for path in {self.kept, self.out}:
            with path.open("a") as file:
                file.write(line)

    def done(self) -> set[str]:
        """Names of the results that hold no error."""
        return {result["name"] for result in read([self.kept]) if "error" not in result}


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Every result of the files, one of each name: no failure after a success, else the last."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            result = json.loads(line)
            if "error" not in result or "error" in found.get(result["name"], result):
                found[result["name"]] = result
    return list(found.values())


def about(commit: str) -> dict[str, Any]:
    """What every result says of where it was measured, and by which commit of this project."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    versions = "from importlib.metadata import version as v; print(v('torch'), v('triton'))"
    gpus = [line.split(", ") for line in output(query).splitlines()]
    torch, _, triton = output([sys.executable, "-c", versions]).strip().partition(" ")
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
