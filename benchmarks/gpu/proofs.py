"""The GPU rows of `vllm-codemods verify --gpu`, for each release's pristine tree.

    PYTHONPATH=ROOT/site python benchmarks/gpu/proofs.py ROOT --out OUT --commit HASH

Rows without timings run for several releases at once; `gpu-cost` runs alone, one by one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from jobs import RELEASES
from record import Record, machine, read

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan
from codemods.engine.planning import make_plan
from codemods.prove import Options
from codemods.recipes.slot_mapping.proofs.gpu import ROWS, prove

TIMED = "gpu-cost"


def prove_one(plan: Plan, release: str, row: str, left_s: float) -> dict[str, Any]:
    result: dict[str, Any] = {"kind": "proof", "name": f"{release}-{row}", "release": release}
    if left_s < 20:
        return result | {"error": "no time left"}
    try:
        proof = prove(row, plan, Options(gpu=True, timeout=min(240.0, left_s)))
    except Exception as error:  # one row's fault must not keep the others
        return result | {"error": repr(error)}
    told = {"status": proof.status.value, "detail": proof.detail, "figures": proof.figures}
    return result | {"proof": row} | told


def row_of(result: dict[str, Any]) -> str:
    if "error" in result:
        return f"{result['name']:24} FAILED {result['error']}"
    figures = {k: v for k, v in result["figures"].items() if k != "stand_ins"}
    return f"{result['name']:24} {result['status']}: {result['detail']} {figures}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--only", default="", help="a regular expression over RELEASE-ROW")
    parser.add_argument("--at-once", type=int, default=7)
    parser.add_argument("--for-s", type=float, default=400.0)
    args = parser.parse_args()
    begun = time.monotonic()
    about = machine(sys.executable, args.commit)
    record = Record(args.root / "proofs.jsonl", args.out / "proofs.jsonl", about)
    done = record.done()
    plans = {
        release: make_plan(Checkout.find(args.root / "trees" / release))
        for release in RELEASES
        if (args.root / "trees" / release).exists()
    }
    wanted = [
        (release, row)
        for row in ROWS
        for release in plans
        if re.search(args.only, f"{release}-{row}") and f"{release}-{row}" not in done
    ]

    def run(job: tuple[str, str]) -> None:
        left = args.for_s - (time.monotonic() - begun)
        result = prove_one(plans[job[0]], *job, left)
        record.add(result)
        print(row_of(result), flush=True)

    with ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(run, [job for job in wanted if job[1] != TIMED]))
    for job in wanted:
        if job[1] == TIMED:
            run(job)
    if record.kept.exists():
        shutil.copy(record.kept, args.out / "proofs.jsonl")
    print(f"-- all in {time.monotonic() - begun:.0f} s")
    print("\n".join(row_of(result) for result in read(record.kept)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
