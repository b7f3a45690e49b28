"""docs/benchmarks.md and docs/benchmarks.svg, from docs/benchmarks.json and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .chart import Bar, chart

OURS = "vllm-codemods"
Data = dict[str, Any]
HEAD = """\
# Against what people use today

Written by `benchmarks/peers.py` from `docs/benchmarks.json`; a test fails where they differ.
`make peers` measures all of it again.

To bring the fix into a tree, people use a patch or a search-and-replace rule. Compared with this
tool are:

- `git apply`, `git apply -3`, GNU `patch` with its default fuzz, and `wiggle`. Each gets the patch
  that this tool makes for 0.21.0, and the patch that it makes for the nearest other release: the
  one whose files have the fewest lines other than the tree's. `git apply -3` finds the objects that
  it needs. Paths in the patch are those of the tree.
- A rule for ast-grep and one for semgrep, written for this page: `benchmarks/peers/rules/`.

![How often the fix ends up right](benchmarks.svg)
"""
TREES = """\
The trees are the wheels of vLLM {releases}, and the {forks} small trees of `fixtures/forks/`. vLLM
wrote the first; the second were written for this project's own tests, so that this tool does well
there is no surprise. There the patch of 0.21.0 is the one for the tree that stands for 0.21.0.

- **right**: the tool exits 0, and the judge finds no fault in the tree.
- **wrong**: the tool exits 0, and the judge finds one. In brackets: how many of them were not
  changed at all. ast-grep and semgrep exit 0 when no rule matches.
- **refused**: the tool exits otherwise. In brackets: how many of them it left changed in part.

The judge, `benchmarks/peers/judge/`, shares no code with this tool. It runs the tree: the worker's
warm-up method, in every combination of runner, pipeline rank, pooling, eager mode and what other
conditions come to, and then requests. Triton's own binder says which launches would compile, with no
GPU. A tree is right when

- requests compile no kernel, and none compiles while the monitor is active,
- the V2 runner's start is what it was, and the worker calls what it called before,
- block tables are as before the warm-up, also those of a live request,
- every file compiles, and no function but the worker's method has another body.

The small trees run whole, also under Triton's interpreter, in which the kernels really run and
requests must get the same slots. Of a release only the worker, the block tables and the warm-up
module run; all else is stood in for, upstream's own warm-ups too. Those reach some engines only, so a
tree that relies on them is wrong. Before any rewrite the judge finds a fault in every tree that needs
the fix.
"""
FIDELITY = """\
Of the trees that a tool changed and says that it fixed: on how many something was lost. *Comments*:
one is gone or has another text. *Line ends*: a file has a kind of line end that it had not, or lost
the one at its end. *Formatting*, *lint*: ruff with the tree's settings (of a release: those of
0.21.0) would format a file anew that it left alone before, or has a new complaint. *Second run*: it
changes the tree again. *Files left*: files that are no part of the tree.
"""
TIME = """\
Medians on the clock, with the quickest and the slowest run; processor time; and the most memory that
one process held. Each command starts anew. The tree is the source archive of 0.21.0; *ten times the
files* has nine more copies beside it. *Bare LibCST* starts Python, imports LibCST, parses the
{changed} files that the fix changes, and prints or writes them: the least that a tool on LibCST
costs. Patches need no search, and they were made beforehand.
"""
LIMITS = {"vllm-codemods check": ("bare LibCST, print", 1.2), "vllm-codemods apply": ("bare LibCST, write", 1.3)}
LOSSES = ("comments", "line_ends", "format", "lint", "again", "left_behind")
LOSS_NAMES = ("comments", "line ends", "formatting", "lint", "second run", "files left")


def write(data: Data, folder: Path) -> None:
    (folder / "benchmarks.md").write_text(page(data), "utf-8")
    (folder / "benchmarks.svg").write_text(picture(data), "utf-8")


def page(data: Data) -> str:
    parts = [HEAD]
    if "landing" in data:
        parts += ["## Landing\n", *landing(data["landing"]), about(data["landing"])]
    if "fidelity" in data:
        parts += ["## Fidelity\n", FIDELITY, fidelity(data["fidelity"]), about(data["fidelity"])]
    if "time" in data:
        parts += ["## Time and memory\n", *time(data["time"]), about(data["time"])]
    parts += ["## Where others do better\n", better(data)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def picture(data: Data) -> str:
    part = data["landing"]
    bars = []
    for name in contenders(part):
        found = outcomes(part, name, needy(part))
        bars.append(Bar(name, found["right"], found["wrong"], found["refused"]))
    return chart(bars, f"The fix on {len(needy(part))} trees that need it")


def contenders(part: Data) -> list[str]:
    return list(dict.fromkeys(result["contender"] for result in part["results"]))


def needy(part: Data, kind: str | None = None) -> set[str]:
    return {t["tree"] for t in part["trees"] if t["in_need"] and kind in (None, t["kind"])}


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
    head = ["", *(f"{place}: {what}" for place in ("releases", "small trees") for what in ("right", "wrong", "refused"))]
    yield table(
        head,
        (
            [bold(name), *(cell for trees in kinds.values() for cell in counts(outcomes(part, name, trees)))]
            for name in contenders(part)
        ),
    )
    yield from idle(part)
    yield from faults(part)


def counts(found: Counter[str]) -> tuple[str, str, str]:
    unchanged = f" ({found['unchanged']})" if found["unchanged"] else ""
    half = f" ({found['half']})" if found["half"] else ""
    return str(found["right"]), f"{found['wrong']}{unchanged}", f"{found['refused']}{half}"


def idle(part: Data) -> Iterator[str]:
    """The trees that need nothing."""
    trees = {t["tree"] for t in part["trees"]} - needy(part)
    yield (
        f"The other {len(trees)} trees need nothing: the kernel is not there yet, upstream has its "
        "own fix (0.29 and later), or the tree is fixed already. Left as they are, and changed:\n"
    )
    rows = []
    for name in contenders(part):
        found = outcomes(part, name, trees)
        changed = [
            result["tree"]
            for result in part["results"]
            if result["contender"] == name and result["outcome"] == "changed"
        ]
        rows.append([bold(name), found["untouched"], found["changed"], ", ".join(changed)])
    yield table(["", "untouched", "changed", "which"], rows)


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


def fidelity(part: Data) -> str:
    return table(
        ["", "trees", *LOSS_NAMES],
        (
            [bold(row["contender"]), row["trees"], *(row[kind] for kind in LOSSES)]
            for row in part["results"]
        ),
    )


def time(part: Data) -> Iterator[str]:
    yield TIME.format(changed=len(part["changed"]))
    for group in dict.fromkeys(row["group"] for row in part["rows"]):
        rows = [row for row in part["rows"] if row["group"] == group]
        files = f" ({rows[0]['files']:,} files)" if "files" in rows[0] else ""
        yield f"### {group.capitalize()}{files}\n"
        first = rows[0]
        yield table(
            ["", "ms", "quickest to slowest", f"against {first['what']}", "processor, ms", "MiB"],
            (
                [bold(row["what"]), f"{row['ms']:.0f}", f"{row['from']:.0f} to {row['to']:.0f}",
                 f"{row['ms'] / first['ms']:.2f}", f"{row['cpu_ms']:.0f}", f"{row['mib']:.0f}"]
                for row in rows
            ),
        )  # fmt: skip
    yield from limits(part)
    yield from divided(part)


def limits(part: Data) -> Iterator[str]:
    """Whether the tool keeps to what it may cost."""
    rows = {row["what"]: row for row in part["rows"] if row["group"] == "one release"}
    lines = []
    for what, (bare, limit) in LIMITS.items():
        ratio = rows[what]["ms"] / rows[bare]["ms"]
        verdict = "met" if ratio <= limit else "**missed**"
        lines.append(f"- `{what}`: {ratio:.2f} times {bare}; at most {limit} is wanted: {verdict}.\n")
    yield "".join(lines)


def divided(part: Data) -> Iterator[str]:
    rows = {row["what"]: row for row in part["rows"] if row["group"] == "one release"}
    whole = rows["vllm-codemods check"]["ms"]
    samples = sum(row["samples"] for row in part["stages"])
    yield "### How the time of check divides\n"
    yield f"From {samples:,} samples of its stack, taken from outside; *start* is Python's and all imports.\n"
    yield table(
        ["stage", "share", "ms"],
        ([r["stage"], f"{100 * r['share']:.0f} %", f"{whole * r['share']:.0f}"] for r in part["stages"]),
    )


def better(data: Data) -> str:
    lines = [*better_landing(data.get("landing")), *better_fidelity(data.get("fidelity"))]
    lines += better_time(data.get("time"))
    return "".join(f"- {line}\n" for line in lines) or "Nowhere in what was measured.\n"


def better_landing(part: Data | None) -> Iterator[str]:
    for kind, told in (("release", "releases"), ("fork", "small trees")):
        trees = needy(part, kind) if part else set()
        ours = outcomes(part, OURS, trees)["right"] if part else 0
        for name in contenders(part) if part else ():
            more = outcomes(part, name, trees)["right"] - ours
            if more > 0:
                yield f"{name} is right on {more} more {told}."
    if part:
        yield from alone(part)


def alone(part: Data) -> Iterator[str]:
    """Trees that another contender gets right and this tool does not."""
    right: dict[str, list[str]] = {}
    for result in part["results"]:
        if result["outcome"] == "right":
            right.setdefault(result["tree"], []).append(result["contender"])
    for tree, names in right.items():
        if OURS not in names:
            yield f"{', '.join(names)}: right on `{tree}`, which this tool refuses."


def better_fidelity(part: Data | None) -> Iterator[str]:
    rows = {row["contender"]: row for row in part["results"]} if part else {}
    for kind, told in zip(LOSSES, LOSS_NAMES, strict=True):
        if rows and rows[OURS][kind]:
            best = [n for n, row in rows.items() if row[kind] * rows[OURS]["trees"] < rows[OURS][kind] * row["trees"]]
            if best:
                yield f"{told}: {', '.join(best)} lose it less often."


def better_time(part: Data | None) -> Iterator[str]:
    rows = [row for row in part["rows"] if row["group"] == "one release"] if part else []
    ours = next((row for row in rows if row["what"] == f"{OURS} apply"), None)
    for row in rows if ours else ():
        if row["what"].startswith((OURS, "bare")):
            continue
        quicker, smaller = ours["ms"] / row["ms"], ours["mib"] / row["mib"]
        told = [f"{quicker:.0f} times as fast"] if quicker >= 1.5 else []
        told += [f"with {1 / smaller:.0%} of the memory"] if smaller > 1 else []
        if told:
            yield f"{row['what']} is {' and '.join(told)} as this tool's apply, on one release."


def about(part: Data) -> str:
    where = part["about"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"`{part['command']}`, {where['date']}, commit `{where['commit']}`: {where['cores']} cores of "
        f"{where['cpu']}, Python {where['python']}; {versions}.\n"
    )


def bold(name: str) -> str:
    return f"**{name}**" if name.startswith(OURS) else name


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)
