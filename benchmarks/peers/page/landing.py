"""The counts of right, wrong and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .table import Data, bold, table

TREES = """\
The trees are the wheels of vLLM {releases}, and the {forks} small trees of `fixtures/forks/`. The
small trees were written for this project's own tests, so it is no surprise that this tool does
well on them. There, the patch of 0.21.0 is the patch of the small tree that is shaped like 0.21.0.

- **right**: the tool exits 0, and the judge finds no fault.
- **wrong**: the tool exits 0, and the judge finds a fault. In brackets: how many of these trees
  the tool did not change at all. ast-grep and semgrep exit 0 when no rule matches.
- **refused**: the tool exits with another code. In brackets: how many of these trees it left
  changed in part.

The judge, `benchmarks/peers/judge/`, shares no code with this tool. It runs the tree: the worker's
warm-up method, for each combination of runner, pipeline rank, pooling, eager mode and the outcome
of other conditions, and then requests. Triton's own binder tells which launches would compile; no
GPU is needed. A tree is right when all of this holds:

- Requests compile no kernel, and none compiles while the monitor is active.
- The V2 runner starts as before, and the worker makes the calls that it made before.
- The warm-up leaves the block tables as they were, also those of a live request.
- Every file compiles, and no function changed but the worker's method.

The small trees run whole. They also run under Triton's interpreter, where the kernels really run,
and requests must get the same slots as before. Of a release, only the worker, the block tables and
the warm-up module run; stand-ins replace the rest, upstream's own warm-ups too. Those reach some
engines only, so a tree that relies on them counts as wrong. Before any rewrite, the judge finds a
fault in every tree that needs the fix.
"""
IDLE = """\
The other {count} trees need nothing: the kernel is not there yet, upstream has its own fix (0.29
and later), or the tree is fixed already. In brackets: how many of the trees changed with exit code
0 started before and do not start after it. For 0.29 and later the judge cannot tell.
"""


def landing(part: Data) -> Iterator[str]:
    kinds = {kind: needy(part, kind) for kind in ("release", "fork")}
    versions = sorted(
        (t["tree"] for t in part["trees"] if t["kind"] == "release"),
        key=lambda version: tuple(map(int, version.split("."))),
    )
    forks = sum(t["kind"] == "fork" for t in part["trees"])
    yield TREES.format(releases=f"{versions[0]} to {versions[-1]}", forks=forks)
    releases, small = (len(trees) for trees in kinds.values())
    yield f"{releases} releases and {small} small trees need the fix:\n"
    head = [
        "",
        *(
            f"{place}: {what}"
            for place in ("releases", "small trees")
            for what in ("right", "wrong", "refused")
        ),
    ]
    yield table(
        head,
        (
            [
                bold(name),
                *(cell for trees in kinds.values() for cell in counts(outcomes(part, name, trees))),
            ]
            for name in contenders(part)
        ),
    )
    yield from idle(part)
    yield from faults(part)


def needy(part: Data, kind: str | None = None) -> set[str]:
    return {t["tree"] for t in part["trees"] if t["in_need"] and kind in (None, t["kind"])}


def contenders(part: Data) -> list[str]:
    return list(dict.fromkeys(result["contender"] for result in part["results"]))


def outcomes(part: Data, contender: str, trees: set[str]) -> Counter[str]:
    """Outcomes on those trees; `unchanged` are of the wrong, `half` of the refused."""
    found: Counter[str] = Counter()
    for result in part["results"]:
        if result["contender"] != contender or result["tree"] not in trees:
            continue
        found[result["outcome"]] += 1
        found["unchanged"] += result["outcome"] == "wrong" and not result["changed"]
        found["half"] += result["outcome"] == "refused" and bool(result["changed"])
    return found


def counts(found: Counter[str]) -> tuple[str, str, str]:
    unchanged = f" ({found['unchanged']})" if found["unchanged"] else ""
    half = f" ({found['half']})" if found["half"] else ""
    return str(found["right"]), f"{found['wrong']}{unchanged}", f"{found['refused']}{half}"


def idle(part: Data) -> Iterator[str]:
    """The trees that need nothing."""
    trees = {t["tree"] for t in part["trees"]} - needy(part)
    yield IDLE.format(count=len(trees))
    rows = []
    for name in contenders(part):
        own = [r for r in part["results"] if r["contender"] == name and r["tree"] in trees]
        changed = [r for r in own if r["changed"]]
        silent = [r for r in changed if not r["exit"]]
        stopped = [r["tree"] for r in silent if "faults" in r]
        not_started = f" ({len(stopped)})" if stopped else ""
        in_part = len(changed) - len(silent)
        rows.append([bold(name), len(own) - len(changed), f"{len(silent)}{not_started}", in_part])
    yield table(["", "untouched", "changed, exit code 0", "changed, another exit code"], rows)


def faults(part: Data) -> Iterator[str]:
    """What the judge found in the trees that are wrong."""
    yield "What was wrong where success was reported:\n"
    found: dict[tuple[str, str], list[str]] = {}
    for result in part["results"]:
        if result["outcome"] == "wrong":
            found.setdefault((result["contender"], result["faults"][0]), []).append(result["tree"])
    yield table(
        ["", "the judge says", "trees"],
        ([name, fault, ", ".join(trees)] for (name, fault), trees in found.items()),
    )
