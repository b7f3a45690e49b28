"""What `vllm-codemods check` costs on a release, against the least that such a tool can cost.

    python benchmarks/check_cost.py [--rounds N]

Three commands take turns, so that a slow moment of the machine hits them alike:

- bare: start Python, import libcst, parse the three files that change, print them;
- check, on a folder that holds those three files alone;
- check, on the whole source archive of the release (some 4,000 files).

Prints the median wall time of each in ms and two ratios. Exits 1 when check costs more than 1.35
times the bare script, or the whole release more than 1.10 times the three files. The release's
source archive (34 MB) is downloaded once and kept in the cache.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from codemods.release import ReleaseError, archives, cache, index
from codemods.release.names import Source

RELEASE = "0.21.0"
FILES = (
    "vllm/v1/worker/block_table.py",
    "vllm/v1/worker/gpu/warmup.py",
    "vllm/v1/worker/gpu_worker.py",
)
LIMIT_BARE = 1.35
LIMIT_WHOLE = 1.10
BARE = """\
import sys

import libcst

for path in sys.argv[1:]:
    with open(path, "rb") as file:
        module = libcst.parse_module(file.read())
    sys.stdout.buffer.write(module.bytes)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of check on a vLLM release")
    parser.add_argument("--rounds", type=int, default=21, help="runs of each command (21)")
    options = parser.parse_args()
    try:
        whole = whole_release()
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="check-cost-") as scratch:
        alone = Path(scratch) / "alone"
        for name in FILES:
            (alone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(whole / name, alone / name)
        script = Path(scratch) / "bare.py"
        script.write_text(BARE, "utf-8")
        check = [sys.executable, "-m", "codemods", "check"]
        commands = {
            "bare": [sys.executable, str(script), *(str(alone / name) for name in FILES)],
            "three files": [*check, str(alone)],
            "whole release": [*check, str(whole)],
        }
        median = medians(commands, options.rounds)
    return report(median, sum(1 for path in whole.rglob("*") if path.is_file()))


def medians(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """Median wall seconds of each command, taken in turns after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            ran = subprocess.run(command, capture_output=True, check=False)
            spent = time.perf_counter() - start
            if ran.returncode != (0 if name == "bare" else 1):
                raise SystemExit(f"{name} exited {ran.returncode}: {ran.stderr.decode()}")
            if turn:
                times[name].append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}


def report(median: dict[str, float], count: int) -> int:
    """Print the table; the exit code."""
    for name, spent in median.items():
        print(f"{name:<14}{spent * 1000:8.0f} ms")
    to_bare = median["three files"] / median["bare"]
    to_alone = median["whole release"] / median["three files"]
    print(f"check / bare script          {to_bare:.2f}  (at most {LIMIT_BARE})")
    print(f"{count} files / three files   {to_alone:.2f}  (at most {LIMIT_WHOLE})")
    return 1 if to_bare > LIMIT_BARE or to_alone > LIMIT_WHOLE else 0


def whole_release() -> Path:
    """The release's source archive, unpacked whole, in the cache. Raises `ReleaseError`."""
    folder = cache.slot(None, RELEASE, Source.SDIST).with_name(f"{RELEASE}-whole")
    tree = folder / f"vllm-{RELEASE}"
    if tree.exists():
        return tree
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=".part-", dir=folder.parent) as scratch,
        index.connect() as client,
    ):
        archive = index.find(client, RELEASE, Source.SDIST)
        path = Path(scratch) / "sdist.tar.gz"
        archives.download(client.s, archive, path)
        with tarfile.open(path, "r:gz") as sdist:
            sdist.extractall(Path(scratch) / "whole", filter="data")
        (Path(scratch) / "whole").rename(folder)
    return tree


if __name__ == "__main__":
    sys.exit(main())
