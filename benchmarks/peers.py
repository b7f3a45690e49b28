"""What people use in this tool's place, side by side with it: docs/benchmarks.{json,md,svg}.

    python benchmarks/peers.py                          # measure all, then write the three
    python benchmarks/peers.py --only landing,fidelity  # these parts; the others stay as they are
    python benchmarks/peers.py --page                   # write the page and the chart from the JSON

Landing and fidelity run every contender on every release and fork's tree, some minutes on two
cores. Time needs an idle machine. git, patch, wiggle (Debian) and the packages of
benchmarks/peers/requirements.txt have to be installed; `make peers` does it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers import attempts, contenders, fidelity, landing, page, project, subjects, timing
from peers.machine import about, watched

PARTS = ("landing", "fidelity", "time")
DOCS = project.ROOT / "docs"
JSON = DOCS / "benchmarks.json"


def main() -> int:
    options = parsed()
    data: dict[str, Any] = json.loads(JSON.read_text("utf-8")) if JSON.exists() else {}
    if not options.page:
        if lacking := contenders.missing(options.programs):
            print(f"to be installed first: {', '.join(lacking)}", file=sys.stderr)
            return 2
        data |= measured(options)
        JSON.write_text(as_json(data), "utf-8")
    page.write(data, DOCS)
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=parts, default=list(PARTS), metavar="PART,...")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument(
        "--programs",
        type=Path,
        default=project.ROOT / ".venv" / "peers" / "bin",
        help="the folder of ast-grep, semgrep and py-spy (.venv/peers/bin)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each timed command (7)")
    return parser.parse_args()


def parts(text: str) -> list[str]:
    names = text.split(",")
    if wrong := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(wrong)} ({', '.join(PARTS)})")
    return names


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Each wanted part, with where it was measured."""
    found: dict[str, Any] = {}
    where = about(options.programs)  # before: the sources may change while it runs
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        work = Path(folder)
        if {"landing", "fidelity"} & set(options.only):
            trees = subjects.releases(work / "releases") + subjects.forks(work / "forks")
            rivals = contenders.contenders(subjects.patches(trees), options.programs)
            tried = attempts.attempts(rivals, trees, work / "runs", options.jobs)
            if "landing" in options.only:
                landing.check_need(trees, options.jobs)
                found["landing"] = {
                    "trees": [
                        {"tree": t.name, "kind": t.kind, "in_need": t.in_need} for t in trees
                    ],
                    "results": landing.results(tried, options.jobs),
                }
            if "fidelity" in options.only:
                found["fidelity"] = {"results": fidelity.results(tried, options.jobs)}
        if "time" in options.only:
            busy: dict[str, Any] = {}
            with watched(busy):
                result = timing.results(work, options.programs, options.rounds)
            found["time"] = busy | result
    command = "python benchmarks/peers.py --only {}"
    return {
        part: {"command": command.format(part), "about": where, **result}
        for part, result in found.items()
    }


def as_json(data: dict[str, Any]) -> str:
    """One line for each result, so that a diff shows which have changed."""
    lines = []
    for part in (part for part in PARTS if part in data):
        fields = []
        for name, value in data[part].items():
            if isinstance(value, list):
                rows = ",\n".join(f"   {json.dumps(row)}" for row in value)
                fields.append(f'  "{name}": [\n{rows}\n  ]')
            else:
                fields.append(f'  "{name}": {json.dumps(value)}')
        lines.append(f' "{part}": {{\n' + ",\n".join(fields) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
