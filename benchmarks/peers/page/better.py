"""Where another contender does better than this tool, found in the figures themselves."""

from __future__ import annotations

from collections.abc import Iterator

from .costs import LOSS_NAMES, LOSSES
from .landing import contenders, needy, outcomes
from .table import OURS, Data

AGAINST = ", compared with this tool's apply"


def better(data: Data) -> str:
    lines = [*better_landing(data.get("landing")), *better_fidelity(data.get("fidelity"))]
    lines += better_time(data.get("time"))
    return "".join(f"- {line}\n" for line in lines) or "Nowhere in what was measured.\n"


def better_landing(part: Data | None) -> Iterator[str]:
    for kind, trees_name in (("release", "releases"), ("fork", "small trees")):
        trees = needy(part, kind) if part else set()
        ours = outcomes(part, OURS, trees)["right"] if part else 0
        for name in contenders(part) if part else ():
            more = outcomes(part, name, trees)["right"] - ours
            if more > 0:
                yield f"{name} is right on {more} more {trees_name}."
    if part:
        yield from alone(part)


def alone(part: Data) -> Iterator[str]:
    """Trees that another contender gets right and this tool does not."""
    right: dict[str, list[str]] = {}
    for result in part["results"]:
        if result["outcome"] == "right":
            right.setdefault(result["tree"], []).append(result["contender"])
    own = {r["tree"]: r["outcome"] for r in part["results"] if r["contender"] == OURS}
    for tree, names in right.items():
        if own[tree] != "right":
            yield f"`{tree}` is {own[tree]} with this tool, and right with: {'; '.join(names)}."


def better_fidelity(part: Data | None) -> Iterator[str]:
    rows = {row["contender"]: row for row in part["results"]} if part else {}
    for kind, loss in zip(LOSSES, LOSS_NAMES, strict=True):
        if rows and rows[OURS][kind]:
            best = [
                n
                for n, row in rows.items()
                if row[kind] * rows[OURS]["trees"] < rows[OURS][kind] * row["trees"]
            ]
            if best:
                yield f"{loss}: {', '.join(best)} lose it less often."


def better_time(part: Data | None) -> Iterator[str]:
    rows = [row for row in part["rows"] if row["group"] == "one release"] if part else []
    ours = next((row for row in rows if row["what"] == f"{OURS} apply"), None)
    for row in rows if ours else ():
        if row["what"].startswith((OURS, "bare")):
            continue
        faster, memory = ours["ms"] / row["ms"], row["mib"] / ours["mib"]
        better_at = [f"is {faster:.0f} times as fast"] if faster >= 1.5 else []
        better_at += [f"uses {memory:.0%} of the memory"] if memory < 1 else []
        if better_at:
            yield f"On one release, {row['what']} {' and '.join(better_at)}{AGAINST}."
