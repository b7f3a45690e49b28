"""The results in docs/validation/results.json, and what they come to, case by case.

A result is one JSON object, as benchmarks/gpu records it. The page and the chart are made of what
this module says; it decides nothing about their looks.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))

import runs  # noqa: E402
from cases import BEFORE, BOTH, BY_NAME, ONE, SIDES  # noqa: E402

Result = dict[str, Any]
KEPT_LOG = 300
FEWEST_PAIRS = 3


def load(path: Path) -> list[Result]:
    return json.loads(path.read_text()) if path.exists() else []


def merged(kept: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """One result of each name: a new one, unless it failed or was not timed where the old was."""
    found = {result["name"]: result for result in kept}
    for result in new:
        old = found.get(result["name"])
        if old is None or worth(result) >= worth(old):
            found[result["name"]] = shortened(result)
    return [found[name] for name in sorted(found)]


def worth(result: Result) -> int:
    return 0 if "error" in result else 2 if result.get("timed", True) else 1


def shortened(result: Result) -> Result:
    """A failure's last line, not its log, which names the machine's folders; no embeddings."""
    told = dict(result)
    if "error" in told:
        lines = [line for line in str(told["error"]).strip().splitlines() if line.strip()]
        told["error"] = lines[-1][-KEPT_LOG:] if lines else "no message"
    return told


@dataclass(frozen=True)
class Spread:
    """What several runs of the same server took, in ms."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def is_below(self, other: Spread) -> bool:
        """Every run below every one of the other's."""
        return self.high < other.low


@dataclass(frozen=True)
class Comparison:
    """One case of one tree: the results of each side, all its runs."""

    tree: str
    case: str
    sides: dict[str, list[Result]]

    @property
    def after(self) -> str:
        """The side of the last rewrite that was served."""
        return next(side for side in (BOTH, ONE, BEFORE) if side in self.sides)

    def most_compiled(self, side: str, recipe: str, when: str) -> int:
        """Kernels compiled `when`, in the run of the side with the most."""
        return max(runs.compiled(result, recipe, when) for result in self.sides[side])

    def is_named(self, side: str, recipe: str) -> bool:
        return any(runs.named(result, recipe) for result in self.sides[side])

    def has_monitor(self) -> bool:
        return any(r["monitor_activated"] for results in self.sides.values() for r in results)

    def others_named(self, side: str) -> list[str]:
        return sorted({name for r in self.sides[side] for name in runs.others_named(r)})

    def first_request(self, side: str) -> Spread | None:
        """The first request's time, where enough runs were timed."""
        times = [r["requests"][0]["ms"] for r in self.sides.get(side, ()) if r["timed"]]
        return Spread(tuple(times)) if len(times) >= FEWEST_PAIRS else None

    def start(self, side: str) -> Spread:
        return Spread(tuple(r["start_s"] for r in self.sides[side]))

    def faults(self) -> list[str]:
        """What is not as it should be: answers refused, or other than before the rewrite."""
        found = []
        for side, results in self.sides.items():
            codes = [code for r in results for code in runs.statuses(r)]
            if bad := sum(code != 200 for code in codes):
                found.append(f"{side}: {bad} of {len(codes)} requests were not answered")
            if any(runs.differing(self.sides[BEFORE][0], r) for r in results):
                found.append(f"{side}: answers differ")
        return found


def comparisons(results: Iterable[Result]) -> list[Comparison]:
    """Every case of every tree that was served before the rewrite and after it."""
    found: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for result in results:
        if result.get("kind") == "serve" and "error" not in result:
            sides = found.setdefault((result["tree"], result["case"]), {})
            sides.setdefault(result["side"], []).append(result)
    return [
        Comparison(tree, case, {side: sides[side] for side in SIDES if side in sides})
        for (tree, case), sides in sorted(found.items(), key=lambda item: place(*item[0]))
        if BEFORE in sides and len(sides) > 1
    ]


def place(tree: str, case: str) -> tuple[int, str]:
    names = list(BY_NAME)
    return (names.index(case) if case in names else len(names)), tree
