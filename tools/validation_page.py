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
    SIDES,
    Comparison,
    Result,
    Spread,
    comparisons,
    not_run,
    planned,
)

import suites  # isort: skip  # of benchmarks/gpu, on the path by validation_results

TIMED = ("dense", "default-backend")
NOT_RUN, NOT_PLANNED = "not run", "-"
MANY = 2
# How a live batch was run, by its name in the results.
LIVE_RUNS = {
    "called again": "with the warm-up called again",
    "called again, with the closed pull request's warm-up": "with the closed pull request's "
    "warm-up called",
    "undisturbed again": "run a second time with no call",
}
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
released, none after the rewrite. **reported** says that vLLM's JIT monitor reported the kernel.
A cell with `-` was not planned.
"Still reported" are other kernels, of neither recipe, that it reports after the rewrite too.
"""


def page(results: list[Result], earlier: list[Result]) -> str:
    found, served = comparisons(results), comparisons(results, fewest=1)
    sections = [
        HEAD,
        *machines(results),
        READING,
        *first_requests(found),
        *zeroing(served),
        *every_case(served),
        *forks(served),
        *beside(results),
        *faults(found),
        *failures(results),
        *gaps(results),
        *before_this(results, earlier),
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
    """Compiles during requests before and after, and whether the monitor reported the kernel."""
    sides = (BEFORE, after)
    counts = [
        one.most_compiled(side, recipe, "requests") if side in one.sides else NOT_RUN
        for side in sides
    ]
    text = f"{counts[0]} → {counts[1]}"
    if not one.has_monitor():
        return text
    words = ["**reported**" if one.is_named(side, recipe) else "not reported"
             for side in sides if side in one.sides]  # fmt: skip
    return f"{text}, {words[0]}" if words[0] == words[-1] else f"{text}, {words[0]} → {words[1]}"


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
        return f"{round(before.median) - round(after.median)} ms less"
    if before.is_below(after):
        return f"**{round(after.median) - round(before.median)} ms more**"
    if one.most_compiled(BEFORE, SLOTS, "requests") == 0:
        return "nothing to gain: upstream compiles it at start"
    return "no difference beyond the spread"


def first_requests(found: list[Comparison]) -> Iterator[str]:
    rows = [one for one in found if one.case in TIMED and not one.tree.startswith("fork")]
    if not rows:
        return
    yield "## The first request\n"
    yield (
        f"Median of at least {FEWEST_PAIRS} servers before and as many after, in brackets the "
        "lowest and highest. "
        "Servers start together; the requests that count are sent to one server at a time, in "
        "alternating order, while the others are idle.\n"
    )
    yield from table(
        ("attention", "vLLM", "compiles and monitor", "ms before", "ms after", "difference",
         "still reported"),
        (
            ("Triton" if one.case == "dense" else "vLLM's default", one.tree,
             change(one, SLOTS, one.after), spread(one.first_request(BEFORE)),
             spread(one.first_request(one.after)), verdict(one), still_named(one))
            for one in rows
        ),
    )  # fmt: skip
    yield "![First request before and after](validation.svg)\n"


def still_named(one: Comparison) -> str:
    """Kernels of neither recipe that the monitor names after the rewrite as well."""
    if not one.has_monitor():
        return "no monitor"
    if one.after == BEFORE:
        return NOT_RUN
    names = [f"`{name}`" for name in one.others_named(one.after)]
    return (", ".join(names) or "none") if len(names) <= MANY else f"{len(names)} kernels"


def zeroing(found: list[Comparison]) -> Iterator[str]:
    rows = [one for one in found if is_hybrid(one) and not one.tree.startswith("fork")]
    if not rows:
        return
    yield "## Hybrid models, both recipes\n"
    yield (
        "As released → slot-mapping alone → both recipes: each kernel's compiles at start + during "
        "requests, and for which of the three the monitor reported it; the first request in ms, "
        f"where each was started {FEWEST_PAIRS} times or more: median, lowest and highest.\n"
    )
    yield from table(
        ("case", "vLLM", "slot-mapping's kernel", "kv-block-zeroing's kernel", "first request",
         "still reported"),
        (
            (one.case, one.tree, steps(one, SLOTS), steps(one, ZEROING), times(one),
             still_named(one))
            for one in rows
        ),
    )  # fmt: skip


def is_hybrid(one: Comparison) -> bool:
    return ZEROING in BY_NAME[one.case].recipes


def steps(one: Comparison, recipe: str) -> str:
    """`0+3 → 1+0`: compiles at start and during requests; the sides whose monitor named it."""
    counts = " → ".join(
        "+".join(str(one.most_compiled(side, recipe, when)) for when in ("start", "requests"))
        if side in one.sides else NOT_RUN
        for side in SIDES
    )  # fmt: skip
    named = [side for side in one.sides if one.is_named(side, recipe)]
    return counts + (f", reported: {', '.join(named)}" if named else "")


def times(one: Comparison) -> str:
    """The first request on each side in turn."""
    found = [one.first_request(side) for side in SIDES if side in one.sides]
    return "not timed" if None in found else " → ".join(map(spread, found))


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
    meant = {(one.what, one.tree) for one in planned()}
    cases = list(dict.fromkeys(one.case for one in rows))
    yield from table(
        ("case", "what it is", *columns),
        (
            (
                c,
                BY_NAME[c].shows,
                *(
                    cells.get((c, name), NOT_RUN if (c, name) in meant else NOT_PLANNED)
                    for name in columns
                ),
            )
            for c in cases
        ),
    )


def beside(results: list[Result]) -> Iterator[str]:
    if any(result["kind"] != "serve" for result in results):
        yield "## Beside serving\n"
        yield "`verify` ran while servers started: its times are left out.\n"
        yield from beside_rows(results)


def beside_rows(results: list[Result]) -> Iterator[str]:
    rows = [*own_tests(results), *live_batches(results), *proofs(results)]
    if rows:
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
        others = f"no longer pass: {', '.join(broken)}" if broken else "all others as before"
        yield "vLLM's own tests", tree, f"{text}; {others}"


def failing(result: Result) -> int:
    return sum(verdict.startswith("failed") for verdict in result["tests"].values())


def live_batches(results: list[Result]) -> Iterator[tuple[str, str, str]]:
    for result in results:
        if result.get("kind") == "live" and "error" not in result:
            text = "; ".join(
                f"{LIVE_RUNS.get(how, how)}: {run['differing']} of {run['requests']} answers differ"
                for how, run in result["runs"].items()
            )
            yield f"live batch, {result['model']}, {result['side']}", result["tree"], text


def proofs(results: list[Result]) -> Iterator[tuple[str, str, str]]:
    for result in results:
        if result.get("kind") == "verify" and "error" not in result:
            rows = result["verify"]["proofs"]
            kinds = [row["status"] for row in rows]
            other = [f"{r['proof']} {r['status']}" for r in rows if r["status"] != "pass"]
            text = f"{kinds.count('pass')} of {len(rows)} rows pass, {kinds.count('fail')} fail"
            yield "`verify --gpu`", result["tree"], "; ".join([text, *other])


def faults(found: list[Comparison]) -> Iterator[str]:
    lines = [f"- {one.tree}, {one.case}: {text}" for one in found for text in one.faults()]
    if lines:
        yield "## Answers that differ\n"
        yield "\n".join(lines) + "\n"
    else:
        yield (
            "Servers that started answered every request, and answers before and after are equal "
            "token by token.\n"
        )


def failures(results: list[Result]) -> Iterator[str]:
    rows = [(r["name"], r["error"]) for r in results if "error" in r]
    if rows:
        yield "## What failed\n"
        yield "By release, case, rewrite and run; `before` is vLLM as released.\n"
        yield from table(("what", "its last line"), rows)


def gaps(results: list[Result]) -> Iterator[str]:
    """What the driver means to run and did not: a line for the same sides of the same thing."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for left in not_run(results):
        found.setdefault((left.what, left.sides), []).append(left.tree)
    if found:
        yield "## Not run\n"
        yield (
            "Planned, and without a result: the time on the machine ended first, the released vLLM "
            "did not start (above), or the machine had too few GPUs. No claim is made of them.\n"
        )
        yield from table(
            ("what", "rewrite", "vLLM"),
            ((what, ", ".join(sides), ", ".join(trees)) for (what, sides), trees in found.items()),
        )


def before_this(results: list[Result], earlier: list[Result]) -> Iterator[str]:
    """Counts of earlier commits' rewrites, for what has no result of the present one."""
    compared = {(one.tree, one.case) for one in comparisons(results)}
    rows = [one for one in comparisons(earlier) if (one.tree, one.case) not in compared]
    if not rows:
        return
    yield "## With an earlier rewrite\n"
    yield (
        "Counts that were taken with earlier commits of this project, whose edits were others "
        "(slot mapping alone; on two GPUs a warm-up with one launch less), of what has no result "
        "above. Held in "
        "[validation/earlier.json](validation/earlier.json); no times, each server ran once.\n"
    )
    yield from machines(earlier)
    yield from grid(rows, lambda one: one.tree, lambda one: change(one, SLOTS, ONE))
    done = {result["name"] for result in results}
    yield from beside_rows([r for r in earlier if r["name"] not in done])


def table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    lines = [head, ("---",) * len(head), *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in line) for line in lines)
    yield "\n".join(f"| {line} |" for line in cells) + "\n"
