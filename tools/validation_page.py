"""docs/validation.md: tables that are read in a minute; the rest is in the JSON beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from validation_results import (
    BEFORE,
    BY_NAME,
    FEWEST_PAIRS,
    ONE,
    Comparison,
    Result,
    Spread,
    comparisons,
)

import suites  # isort: skip  # of benchmarks/gpu, on the path by validation_results

TIMED = ("dense", "default-backend")
SLOTS, ZEROING = "slot-mapping", "kv-block-zeroing"
HEAD = """\
# Validation on real GPUs

Written by `tools/validation_report.py` from [validation/results.json](validation/results.json),
which holds every run; how it was measured: `benchmarks/gpu/RUNBOOK.md`. Each server is real vLLM
with a tiny model of random weights, new Triton and torch.compile caches, and vLLM's own Python
files; from its shared objects the code for other GPUs was blanked, to carry them to the machine.
"""
READING = """\
`3 → 0` reads: three specialisations of the kernel were compiled while requests waited as vLLM is
released, none after the rewrite. **named** says that vLLM's JIT monitor reported the kernel.
"""


def page(results: list[Result]) -> str:
    found = comparisons(results)
    sections = [
        HEAD,
        *machines(results),
        READING,
        *first_requests(found),
        *zeroing(found),
        *every_case(found),
        *forks(found),
        *beside(results),
        *faults(found),
        *failures(results),
    ]
    return "\n".join(sections).rstrip() + "\n"


def machines(results: list[Result]) -> Iterator[str]:
    seen = sorted({json.dumps(r["about"], sort_keys=True) for r in results})
    yield from table(
        ("date", "GPU", "driver", "torch", "triton", "commit of this project"),
        (
            (m["date"], f"{m['gpus']} of {m['gpu']}", m["driver"], m["torch"], m["triton"],
             f"`{str(m['commit'])[:12]}`")
            for m in map(json.loads, seen)
        ),
    )  # fmt: skip


def change(one: Comparison, recipe: str, after: str) -> str:
    """Compiles during requests before and after, and whether the monitor named the kernel."""
    counts = [one.most_compiled(side, recipe, "requests") for side in (BEFORE, after)]
    text = f"{counts[0]} → {counts[1]}"
    if not one.has_monitor():
        return text
    said = ["**named**" if one.is_named(side, recipe) else "silent" for side in (BEFORE, after)]
    return f"{text}, {said[0]}" if said[0] == said[1] else f"{text}, {said[0]} → {said[1]}"


def spread(values: Spread | None) -> str:
    if values is None:
        return "not timed"
    return f"{values.median:.0f} ({values.low:.0f} to {values.high:.0f})"


def verdict(one: Comparison) -> str:
    """What the times show; a claim only where no run of one side reaches the other side's."""
    before, after = one.first_request(BEFORE), one.first_request(one.after)
    if before is None or after is None:
        return ""
    if after.is_below(before):
        return f"{before.median - after.median:.0f} ms less"
    if before.is_below(after):
        return f"**{after.median - before.median:.0f} ms more**"
    if one.most_compiled(BEFORE, SLOTS, "requests") == 0:
        return "nothing to gain: upstream compiles it at start"
    return "no difference beyond the spread"


def first_requests(found: list[Comparison]) -> Iterator[str]:
    rows = [one for one in found if one.case in TIMED and not one.tree.startswith("fork")]
    if not rows:
        return
    yield "## The first request\n"
    yield (
        f"Median of at least {FEWEST_PAIRS} servers a side, in brackets the lowest and highest. "
        "Servers start together; the requests that count are sent to one server at a time, in "
        "alternating order, while the others are idle.\n"
    )
    yield from table(
        ("attention", "vLLM", "compiles and monitor", "ms before", "ms after", "so"),
        (
            ("Triton" if one.case == "dense" else "vLLM's default", one.tree,
             change(one, SLOTS, one.after), spread(one.first_request(BEFORE)),
             spread(one.first_request(one.after)), verdict(one))
            for one in rows
        ),
    )  # fmt: skip
    yield "![First request before and after](validation.svg)\n"


def zeroing(found: list[Comparison]) -> Iterator[str]:
    rows = [one for one in found if is_hybrid(one) and not one.tree.startswith("fork")]
    if not rows:
        return
    yield "## Hybrid models, both recipes\n"
    yield (
        "Before, with slot-mapping alone, with both: compiles of each kernel during requests, and "
        "the first request in ms.\n"
    )
    yield from table(
        ("case", "vLLM", "slot-mapping's kernel", "kv-block-zeroing's kernel", "first request"),
        (
            (one.case, one.tree, steps(one, SLOTS), steps(one, ZEROING), times(one))
            for one in rows
        ),
    )  # fmt: skip


def is_hybrid(one: Comparison) -> bool:
    return ZEROING in BY_NAME[one.case].recipes


def steps(one: Comparison, recipe: str) -> str:
    """`3 → 0 → 0`: compiles during requests, side by side; the sides whose monitor named it."""
    counts = " → ".join(str(one.most_compiled(side, recipe, "requests")) for side in one.sides)
    named = [side for side in one.sides if one.is_named(side, recipe)]
    return counts + (f", named: {', '.join(named)}" if named else "")


def times(one: Comparison) -> str:
    spreads = [one.first_request(side) for side in one.sides]
    return "not timed" if None in spreads else " → ".join(spread(value) for value in spreads)


def every_case(found: list[Comparison]) -> Iterator[str]:
    rows = [one for one in found if not one.tree.startswith("fork") and not is_hybrid(one)]
    rows = [one for one in rows if one.case not in TIMED]
    if not rows:
        return
    yield "## Other engines, slot mapping\n"
    yield from grid(rows, lambda one: one.tree, lambda one: change(one, SLOTS, ONE))


def forks(found: list[Comparison]) -> Iterator[str]:
    rows = [one for one in found if one.tree.startswith("fork")]
    if not rows:
        return
    yield "## Trees shaped like forks\n"
    yield "Made by `benchmarks/gpu/forks.py` of 0.23.0's files, served with its shared objects.\n"
    yield from grid(rows, lambda one: one.tree, lambda one: change(one, SLOTS, ONE))


def grid(
    rows: list[Comparison], column: Callable[[Comparison], str], cell: Callable[[Comparison], str]
) -> Iterator[str]:
    """A line a case, a column a tree."""
    columns = sorted({column(one) for one in rows})
    cells = {(one.case, column(one)): cell(one) for one in rows}
    cases = list(dict.fromkeys(one.case for one in rows))
    yield from table(
        ("case", "what it is", *columns),
        (
            (c, BY_NAME[c].shows, *(cells.get((c, name), "not run") for name in columns))
            for c in cases
        ),
    )


def beside(results: list[Result]) -> Iterator[str]:
    rows = [*own_tests(results), *live_batches(results), *proofs(results)]
    if rows:
        yield "## Beside serving\n"
        yield from table(("what", "vLLM", "result"), rows)


def by_tree(results: list[Result], kind: str) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.get("kind") == kind and "error" not in result:
            found.setdefault(result["tree"], {})[f"{result.get('model')}{result['side']}"] = result
    return found


def own_tests(results: list[Result]) -> Iterator[tuple[str, str, str]]:
    for tree, sides in sorted(by_tree(results, "tests").items()):
        before = sides.get("Nonebefore")
        after = next((r for name, r in sides.items() if name != "Nonebefore"), None)
        if before is None or after is None:
            continue
        broken = suites.broken(before, after)
        added = [name for name in after["tests"] if name not in before["tests"]]
        passed = sum(verdict == "passed" for verdict in after["tests"].values())
        text = f"{passed} pass, {len(added)} of them added; {failing(before)} fail before"
        told = f"no longer pass: {', '.join(broken)}" if broken else "all others as before"
        yield "vLLM's own tests", tree, f"{text}; {told}"


def failing(result: Result) -> int:
    return sum(verdict.startswith("failed") for verdict in result["tests"].values())


def live_batches(results: list[Result]) -> Iterator[tuple[str, str, str]]:
    for result in results:
        if result.get("kind") == "live" and "error" not in result:
            text = "; ".join(
                f"{how}: {run['differing']} of {run['requests']} differ"
                for how, run in result["runs"].items()
            )
            yield f"live batch, {result['model']}, {result['side']}", result["tree"], text


def proofs(results: list[Result]) -> Iterator[tuple[str, str, str]]:
    for result in results:
        if result.get("kind") == "verify" and "error" not in result:
            rows = result["verify"]["proofs"]
            kinds = [row["status"] for row in rows]
            bad = [row["proof"] for row in rows if row["status"] != "pass"]
            text = f"{kinds.count('pass')} of {len(rows)} rows pass"
            yield "`verify --gpu`", result["tree"], text + (f"; not: {', '.join(bad)}" * bool(bad))


def faults(found: list[Comparison]) -> Iterator[str]:
    told = [f"- {one.tree}, {one.case}: {text}" for one in found for text in one.faults()]
    if told:
        yield "## Answers that are not as they should be\n"
        yield "\n".join(told) + "\n"
    else:
        yield "Every request was answered, and answers are equal token by token on all sides.\n"


def failures(results: list[Result]) -> Iterator[str]:
    rows = [(r["name"], r["error"]) for r in results if "error" in r]
    if rows:
        yield "## What could not be run\n"
        yield from table(("what", "its last line"), rows)


def table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    lines = [head, ("---",) * len(head), *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in line) for line in lines)
    yield "\n".join(f"| {line} |" for line in cells) + "\n"
