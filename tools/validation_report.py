"""docs/validation.md and docs/validation.svg, from docs/validation/results.json.

python tools/validation_report.py                       # write both
python tools/validation_report.py --check               # exit 1 when they are not up to date
python tools/validation_report.py --add OUT/*.jsonl OUT/verify-*.json   # take in new results first
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from validation_chart import Bars, chart
from validation_page import TIMED, page, verdict
from validation_results import BEFORE, ROOT, Result, added, comparisons, load, merged

DOCS = ROOT / "docs"


def bars(results: list[Result]) -> list[Bars]:
    found = []
    for one in comparisons(results):
        before, after = one.first_request(BEFORE), one.first_request(one.after)
        if one.case in TIMED and before is not None and after is not None:
            attention = "Triton" if one.case == "dense" else "default"
            found.append(Bars(f"{one.tree} {attention}", before, after, verdict(one).strip("*")))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--add", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    kept = DOCS / "validation" / "results.json"
    results = load(kept)
    if args.add:
        results = merged(results, added(args.add))
        kept.parent.mkdir(parents=True, exist_ok=True)
        text = ",\n".join(json.dumps(result, sort_keys=True) for result in results)
        kept.write_text(f"[\n{text}\n]\n")
    earlier = load(kept.with_name("earlier.json"))
    made = {DOCS / "validation.md": page(results, earlier)}
    if found := bars(results):
        made[DOCS / "validation.svg"] = chart(found)
    if not args.check:
        for path, text in made.items():
            path.write_text(text)
        return 0
    stale = [p.name for p, text in made.items() if not p.exists() or p.read_text() != text]
    for name in stale:
        print(f"docs/{name} is not what {kept.name} says; run tools/validation_report.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
