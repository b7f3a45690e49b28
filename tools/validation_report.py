"""docs/validation.md and docs/validation.svg, from the raw results in docs/validation/.

    python tools/validation_report.py                       # write both
    python tools/validation_report.py --check               # exit 1 when they are not up to date
    python tools/validation_report.py --add OUT/*.jsonl     # take in new results first

A result is one JSON object, as benchmarks/gpu records it; of a name, the last one taken in counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RAW = DOCS / "validation"
sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))

from jobs import EVERY_CASE, RELEASES, SIDES, Job, jobs  # noqa: E402
from server import is_slot_mapping_kernel  # noqa: E402
from validation_chart import chart  # noqa: E402

Result = dict[str, Any]
KINDS = ("serve", "live", "tests", "proof")
FIRST = 3
# What a commit's rewrite had otherwise than the latest one's.
NOTES = {
    "dee9dbd": "the rows on two GPUs are of a warm-up that made one launch less: the last, which "
    "leaves no slot of block 1 in the slot mapping, compiles nothing."
}
WRITTEN_BY = (
    "Written by `tools/validation_report.py` from `docs/validation/*.json`; how it was measured: "
    "`benchmarks/gpu/RUNBOOK.md`."
)


def load() -> dict[str, Result]:
    """Every result by name, of all files in docs/validation/."""
    found: dict[str, Result] = {}
    for path in sorted(RAW.glob("*.json")):
        found |= {result["name"]: result for result in json.loads(path.read_text())}
    return found


def add(paths: Iterable[Path]) -> None:
    """Merge lines of results into docs/validation/KIND.json."""
    found = load()
    for path in paths:
        for line in path.read_text().splitlines():
            result = json.loads(line)
            if "error" in result and "error" not in found.get(result["name"], result):
                continue
            found[result["name"]] = told_briefly(result)
    RAW.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        some = [r for _, r in sorted(found.items()) if r.get("kind") == kind]
        if some:
            text = ",\n".join(json.dumps(result, sort_keys=True) for result in some)
            (RAW / f"{kind}.json").write_text(f"[\n{text}\n]\n")


def told_briefly(result: Result) -> Result:
    """A failure's last line is kept, not its log: that names the machine's folders."""
    if "error" not in result:
        return result
    lines = [line for line in str(result["error"]).strip().splitlines() if line.strip()]
    return result | {"error": lines[-1][-200:] if lines else "no message"}


def report(results: dict[str, Result]) -> str:
    parts = [
        "# Validation on real GPUs\n",
        f"{WRITTEN_BY}\n",
        *about(results),
        *serving(results),
        *live(results),
        *suites(results),
        *proofs(results),
        *not_run(results),
    ]
    return "\n".join(parts).rstrip() + "\n"


def about(results: dict[str, Result]) -> Iterator[str]:
    machines = sorted({json.dumps(r["about"], sort_keys=True) for r in results.values()})
    if not machines:
        yield "Nothing has been measured yet.\n"
        return
    yield from table(
        ("date", "GPU", "driver", "torch", "triton", "commit of this project"),
        (
            (m["date"], f"{m['gpus']} of {m['gpu']}", m["driver"], m["torch"], m["triton"],
             f"`{str(m['commit'])[:12]}`")
            for m in map(json.loads, machines)
        ),
    )  # fmt: skip
    for machine in map(json.loads, machines):
        if note := NOTES.get(machine["commit"]):
            yield f"`{machine['commit']}`: {note}\n"
    yield (
        "vLLM's Python files are each release's wheel's, before and after the rewrite. From its "
        "shared objects the code for other GPUs was blanked, to carry them to the machine.\n"
    )


def serving(results: dict[str, Result]) -> Iterator[str]:
    served = [r for r in results.values() if r["kind"] == "serve" and r.get("requests")]
    if not served:
        return
    yield "## First requests of a real server\n"
    yield (
        "A tiny model with dummy weights, new Triton and torch.compile caches. Requests of 17, 16 "
        "and 1 tokens are the first three, then 100, 2, 33, 64 and four at once; each asks for 8 "
        "tokens. Starts shared the GPU and the processors with other servers' starts, requests did "
        "not. The monitor came with 0.21.0; compiles are counted in the Triton cache.\n"
    )
    head = ("case", "vLLM", "tree", "start, s", "first three requests, ms", "HTTP 200",
            "slot-mapping compiles: start, requests", "monitor names the kernel",
            "other kernels it names")  # fmt: skip
    yield from table(head, (serve_row(r) for r in sorted(served, key=order)))
    failing = [
        r["name"] for r in served if any(q["status"] != [200] for q in r["requests"][:FIRST])
    ]
    if failing:
        yield (
            f"\nNo request was answered in {', '.join(failing)}: the engine stopped at the first, "
            "with the tree as it is and rewritten alike, so these rows show nothing of the kernel."
        )


def order(result: Result) -> tuple[int, int, int]:
    names = [job.name for gpus in (1, 2) for job in jobs(gpus)]
    place = names.index(result["name"]) if result["name"] in names else len(names)
    return place, RELEASES.index(result["release"]), SIDES.index(result["side"])


def serve_row(result: Result) -> tuple[str, ...]:
    codes = [code for request in result["requests"] for code in request["status"]]
    kernels = sorted({report["kernel"] for report in result["monitor"]})
    ours = [name for name in kernels if is_slot_mapping_kernel(name)]
    speakers = {r["process"] for r in result["monitor"] if is_slot_mapping_kernel(r["kernel"])}
    told = f"**yes** ({', '.join(sorted(speakers))})" if ours else "no"
    return (
        result["case"],
        result["release"],
        result["side"],
        f"{result['startup_s']:.0f}",
        " · ".join(f"{request['ms']:.0f}" for request in result["requests"][:FIRST]),
        f"{codes.count(200)} of {len(codes)}",
        f"{result['slot_mapping_kernels_at_start']}, {compiles(result)}",
        told if result["monitor_activated"] else "no monitor",
        str(len(kernels) - len(ours)),
    )


def compiles(result: Result) -> int:
    """Slot-mapping kernels compiled while requests were served."""
    counts = (request["compiled"].items() for request in result["requests"])
    return sum(n for items in counts for name, n in items if is_slot_mapping_kernel(name))


def live(results: dict[str, Result]) -> Iterator[str]:
    runs = [r for r in results.values() if r["kind"] == "live" and "runs" in r]
    if not runs:
        return
    yield "## A live batch\n"
    yield (
        "Requests decode greedily; in the middle `compile_or_warm_up_model` is called again, with "
        "the block tables saved, cleared and restored as elastic expert parallelism does it. What "
        "they say is compared with an undisturbed run.\n"
    )
    yield from table(
        ("vLLM", "tree", "in the middle", "requests that differ", "blocks of row 0: before, after"),
        (
            (r["release"], r["side"], how, f"{run['differing']} of {run['requests']}",
             blocks(run["notes"]))
            for r in sorted(runs, key=lambda r: (r["release"], SIDES.index(r["side"])))
            for how, run in r["runs"].items()
        ),
    )  # fmt: skip


def blocks(notes: Result | None) -> str:
    if notes is None:
        return "not touched"
    return f"{notes['row_0_blocks_before']}, {notes['row_0_blocks_after']}"


def suites(results: dict[str, Result]) -> Iterator[str]:
    runs = {r["name"]: r for r in results.values() if r["kind"] == "tests" and "tests" in r}
    rows = []
    for release in RELEASES:
        sides = [runs.get(f"{release}-tests-{side}") for side in SIDES]
        before, after = (side["tests"] if side else None for side in sides)
        if before is None or after is None:
            continue
        broken = [t for t, v in before.items() if v == "passed" and after.get(t) != "passed"]
        added = [t for t in after if t not in before]
        failing = [t for t in added if after[t] != "passed"]
        rows.append((
            release, tally(before), tally(after),
            ", ".join(broken) or "none",
            f"{len(added)}, {'all pass' if not failing else 'not passing: ' + ', '.join(failing)}",
        ))  # fmt: skip
    if rows:
        yield "## vLLM's own tests\n"
        yield (
            "`tests/v1/worker/test_gpu_model_runner.py` from each sdist: pass, fail, skip. Models "
            "it names are stood in for by their configuration, and random weights.\n"
        )
        head = ("vLLM", "before", "after", "passed before, not after", "added by the rewrite")
        yield from table(head, rows)
        yield from failures(results)


def failures(results: dict[str, Result]) -> Iterator[str]:
    """Each reason for which tests failed, and where: a reader can tell whose fault it is."""
    where: dict[tuple[str, str], list[str]] = {}
    for result in results.values():
        for test, verdict in result.get("tests", {}).items() if result["kind"] == "tests" else ():
            kind, _, why = verdict.partition(": ")
            if kind == "failed":
                where.setdefault((test, why), []).append(f"{result['release']} {result['side']}")
    if not where:
        return
    yield "\nWhat failed, and why:\n"
    for (test, why), places in sorted(where.items()):
        yield f"- `{test}` ({', '.join(sorted(places))}): {' '.join(why.split())}"
    if any("EADDRINUSE" in why for _, why in where):
        yield (
            "\nThe suites of this run shared the machine's ports. Of those that listened on the "
            "same fixed port at a time only one could, so that this run says nothing about such "
            "a test; `benchmarks/gpu/alone.py` now gives each suite a network of its own."
        )


def tally(tests: dict[str, str]) -> str:
    kinds = [verdict.partition(":")[0] for verdict in tests.values()]
    return ", ".join(str(kinds.count(kind)) for kind in ("passed", "failed", "skipped"))


def proofs(results: dict[str, Result]) -> Iterator[str]:
    rows = [r for r in results.values() if r["kind"] == "proof" and "status" in r]
    if not rows:
        return
    yield "## `vllm-codemods verify --gpu`\n"
    yield from table(
        ("vLLM", "proof", "", "", "figures"),
        (
            (r["release"], r["proof"], r["status"], r["detail"], figures(r))
            for r in sorted(rows, key=lambda r: (r["proof"], RELEASES.index(r["release"])))
        ),
    )


def figures(result: Result) -> str:
    kept = {name: value for name, value in result["figures"].items() if name != "stand_ins"}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in kept.items())


def wanted() -> Iterator[str]:
    yield from (job.name for gpus in (1, 2) for job in jobs(gpus))
    yield from (f"{release}-live-{side}" for release in EVERY_CASE for side in SIDES)
    yield from (f"{release}-tests-{side}" for release in RELEASES for side in SIDES)


def not_run(results: dict[str, Result]) -> Iterator[str]:
    why = {
        name: results.get(name, {}).get("error", "it was not run")
        for name in wanted()
        if name not in results or "error" in results[name]
    }
    if why and results:
        yield "## What could not be run\n"
        yield from table(("what", "why"), ((name, str(text)) for name, text in why.items()))


def table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    lines = [head, ("---",) * len(head), *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in line) for line in lines)
    yield "\n".join(f"| {line} |" for line in cells) + "\n"


def bars(results: dict[str, Result]) -> list[tuple[str, float, float]]:
    """(release, before, after): latency of the first request, in ms, of the dense servers."""
    (case,) = {job.case for job in jobs(1) if job.case.name == "dense"}
    found = []
    for release in RELEASES:
        sides = [results.get(Job(release, case, side).name, {}) for side in SIDES]
        if all(side.get("requests") for side in sides):
            before, after = (side["requests"][0]["ms"] for side in sides)
            found.append((release, before, after))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--add", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    add(args.add)
    results = load()
    made = {DOCS / "validation.md": report(results)}
    if found := bars(results):
        made[DOCS / "validation.svg"] = chart(found)
    if args.check:
        stale = [p.name for p, text in made.items() if not p.exists() or p.read_text() != text]
        for name in stale:
            print(f"docs/{name} is not what docs/validation/ says; run {parser.prog}")
        return 1 if stale else 0
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
