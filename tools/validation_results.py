"""The results in docs/validation/results.json, and what they come to, case by case.

A result is one JSON object, as benchmarks/gpu records it. The page and the chart are made of what
this module says; it decides nothing about their looks.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))

import drive  # noqa: E402
import runs  # noqa: E402
from cases import BEFORE, BOTH, BY_NAME, CASES, ONE, SIDES  # noqa: E402
from forks import FORKS  # noqa: E402
from server import ENDED, NOT_UP  # noqa: E402

Result = dict[str, Any]
KEPT_LOG = 300
FEWEST_PAIRS = 3


def load(path: Path) -> list[Result]:
    return json.loads(path.read_text()) if path.exists() else []


def added(paths: Iterable[Path]) -> list[Result]:
    """New results: of files of one a line, and of `verify --gpu --json`, measured beside them."""
    found: list[Result] = []
    for path in sorted(paths, key=lambda path: path.suffix == ".json"):
        if path.suffix == ".json":
            report = json.loads(path.read_text())
            tree = report["tree"]["version"]
            found.append({"kind": "verify", "name": f"{tree}/verify", "tree": tree,
                          "verify": report, "about": found[0]["about"]})  # fmt: skip
        else:
            found += map(json.loads, path.read_text().splitlines())
    return found


def merged(kept: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """One result of each name: a new one, unless it failed or was not timed where the old was.

    What was cut off when the time ended says nothing about vLLM or the rewrite, and is left out.
    """
    found = {result["name"]: result for result in kept}
    for result in new:
        old = found.get(result["name"])
        if not is_cut_off(result) and (old is None or worth(result) >= worth(old)):
            found[result["name"]] = shortened(result)
    return [found[name] for name in sorted(found)]


def is_cut_off(result: Result) -> bool:
    """Whether it failed by the limit alone: a log that ends in the middle, without an error."""
    error = str(result.get("error", ""))
    if not error or error.startswith(ENDED):
        return False
    return error.startswith((NOT_UP, "did not end")) or "Error" not in error


def worth(result: Result) -> int:
    return 0 if "error" in result else 2 if result.get("timed", True) else 1


def shortened(result: Result) -> Result:
    """What the page needs.

    Of a failure its last line, not the log, which names the machine's folders; of an embedding its
    hash; of the tool's proofs their verdicts, without times taken while servers were starting.
    """
    report = dict(result)
    if "error" in report:
        lines = [line for line in str(report["error"]).strip().splitlines() if line.strip()]
        report["error"] = lines[-1][-KEPT_LOG:] if lines else "no message"
    if "requests" in report:
        report["requests"] = [hashed(request) for request in report["requests"]]
    if "verify" in report:
        rows = report["verify"]["proofs"]
        kept = [{key: row[key] for key in ("recipe", "proof", "status")} for row in rows]
        report["verify"] = {"proofs": kept}
    return report


def hashed(request: Result) -> Result:
    answer = request.get("answer")
    if not isinstance(answer, str) or answer.startswith("sha256:"):
        return request
    return request | {"answer": f"sha256:{hashlib.sha256(answer.encode()).hexdigest()}"}


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

    def is_as_released(self, side: str) -> bool:
        hashes = {r["tree_sha256"] for r in self.sides[BEFORE]}
        return any(r["tree_sha256"] in hashes for r in self.sides[side])

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
            if side != BEFORE and self.is_as_released(side):
                found.append(f"{side}: the tree is not rewritten")
        return found


def comparisons(results: Iterable[Result], fewest: int = 2) -> list[Comparison]:
    """Every case of every tree that was served as released, and with it on `fewest` sides."""
    found: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for result in results:
        if result.get("kind") == "serve" and "error" not in result:
            sides = found.setdefault((result["tree"], result["case"]), {})
            sides.setdefault(result["side"], []).append(result)
    return [
        Comparison(tree, case, {side: sides[side] for side in SIDES if side in sides})
        for (tree, case), sides in sorted(found.items(), key=lambda item: place(*item[0]))
        if BEFORE in sides and len(sides) >= fewest
    ]


@dataclass(frozen=True)
class Planned:
    """What the driver means to run in a tree, and on which sides."""

    what: str
    tree: str
    sides: tuple[str, ...]


def planned() -> list[Planned]:
    """Everything of the driver's stages for the releases that bundle.py brings."""
    found: list[Planned] = []
    for case in CASES:
        sides = case.sides(SIDES)
        if case.name in ("dense", "default-backend"):
            trees: Iterable[str] = drive.RELEASES
        elif drive.pace_of(case) == drive.SLOW and "v2" not in case.name and case.gpus == 1:
            trees = drive.ZEROING
        else:
            trees = drive.EVERY_CASE
        if case.name in drive.LATER_CASES:
            trees = (*trees, *drive.LATER)
        found += [Planned(case.name, tree, sides) for tree in sorted(trees)]
        if case.name in drive.FORK_CASES:
            found += [Planned(case.name, tree, sides) for tree in sorted(FORKS)]
    for tree in drive.RELEASES:
        found.append(Planned("vLLM's own tests", tree, (BEFORE, BOTH)))
    for model in drive.LIVE_MODELS:
        for tree in sorted(drive.EVERY_CASE):
            found.append(Planned(f"live batch, {model}", tree, (BEFORE, BOTH)))
    return found


def not_run(results: Iterable[Result]) -> list[Planned]:
    """What was planned and has no result, with the sides that lack one."""
    done = {(what(r), r["tree"], r["side"]) for r in results if "error" not in r and "side" in r}
    left = [
        Planned(p.what, p.tree, tuple(s for s in p.sides if (p.what, p.tree, s) not in done))
        for p in planned()
    ]
    return [p for p in left if p.sides]


def what(result: Result) -> str:
    """Of which planned thing it is a result."""
    if result["kind"] == "tests":
        return "vLLM's own tests"
    return f"live batch, {result['model']}" if result["kind"] == "live" else str(result["case"])


def place(tree: str, case: str) -> tuple[int, str]:
    names = list(BY_NAME)
    return (names.index(case) if case in names else len(names)), tree
