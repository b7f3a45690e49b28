"""Report a vLLM release on the package index that fixtures/releases.toml does not know.

    python tools/new_releases.py

Exits 0 when the list is complete, 1 with a line per release that is missing, 2 when the index
cannot be read. For a scheduled job: an ordinary test run must not fail because vLLM moved on.
"""

from __future__ import annotations

import sys

from pinned import load

from codemods.release import ReleaseError, versions


def main() -> int:
    known = {pinned.version: pinned.numbers for pinned in load()}
    oldest = min(known.values())
    try:
        offered = versions()
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    missing = [one for one in offered if one not in known and _numbers(one) > oldest]
    for version in missing:
        print(f"vllm {version} is on the package index and not in fixtures/releases.toml")
    return 1 if missing else 0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


if __name__ == "__main__":
    sys.exit(main())
