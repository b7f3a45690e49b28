"""What `vllm-codemods check` costs on a release, against the least that such a tool can cost.

    python benchmarks/check_cost.py [--rounds N]

Four commands take turns, so that a slow moment of the machine hits them alike:

- bare: start Python, import libcst, parse the three files that change, print them;
- check on a folder that holds those three files alone, as they are in the wheel;
- check on a folder that holds the four files that change in the source archive, whose tests count;
- check on the whole source archive (some 5,000 files).

Prints the median wall and processor time of each in ms, and two ratios of wall times. Exits 1 when
check of three files costs more than 1.35 times the bare script, or the whole release more than
1.10 times its four files. The source archive (34 MB) is downloaded once and kept in the cache.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

from codemods.release import ReleaseError, archives, cache, index
from codemods.release.names import Source

RELEASE = "0.21.0"
FILES = (
    "vllm/v1/worker/block_table.py",
    "vllm/v1/worker/gpu/warmup.py",
    "vllm/v1/worker/gpu_worker.py",
)
TESTS = "tests/v1/worker/test_gpu_model_runner.py"
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
    except (ReleaseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="check-cost-") as scratch:
        three = copied(FILES, whole, Path(scratch) / "three")
        four = copied((*FILES, TESTS), whole, Path(scratch) / "four")
        script = Path(scratch) / "bare.py"
        script.write_text(BARE, "utf-8")
        check = [sys.executable, "-m", "codemods", "check"]
        commands = {
            "bare": [sys.executable, str(script), *(str(three / name) for name in FILES)],
            "three files": [*check, str(three)],
            "four files": [*check, str(four)],
            "whole release": [*check, str(whole)],
        }
        costs = medians(commands, options.rounds)
    return report(costs, sum(1 for path in whole.rglob("*") if path.is_file()))


@dataclass(frozen=True)
class Cost:
    """Seconds elapsed, and of processor time, user and system."""

    wall: float
    cpu: float


def medians(commands: dict[str, list[str]], rounds: int) -> dict[str, Cost]:
    """The median cost of each command, taken in turns after one round that is not counted."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            cost = cost_of(command, expected=0 if name == "bare" else 1)
            if turn:
                costs[name].append(cost)
    return {
        name: Cost(median(one.wall for one in found), median(one.cpu for one in found))
        for name, found in costs.items()
    }


def cost_of(command: list[str], expected: int) -> Cost:
    """One run of a command, which must exit as expected."""
    used = getrusage(RUSAGE_CHILDREN)
    start = perf_counter()
    ran = subprocess.run(command, capture_output=True, check=False)
    wall = perf_counter() - start
    now = getrusage(RUSAGE_CHILDREN)
    if ran.returncode != expected:
        raise SystemExit(f"{command} exited {ran.returncode}: {ran.stderr.decode()}")
    return Cost(wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)


def report(costs: dict[str, Cost], count: int) -> int:
    """Print the table; the exit code."""
    print(f"{'':<14}{'wall':>8}{'cpu':>8}   (ms)")
    for name, cost in costs.items():
        print(f"{name:<14}{cost.wall * 1000:8.0f}{cost.cpu * 1000:8.0f}")
    to_bare = costs["three files"].wall / costs["bare"].wall
    to_alone = costs["whole release"].wall / costs["four files"].wall
    print(f"check / bare script       {to_bare:.2f}  (at most {LIMIT_BARE})")
    print(f"{count} files / four files {to_alone:.2f}  (at most {LIMIT_WHOLE})")
    return 1 if to_bare > LIMIT_BARE or to_alone > LIMIT_WHOLE else 0


def copied(names: tuple[str, ...], source: Path, folder: Path) -> Path:
    """A folder that holds those files of `source` and nothing else."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, folder / name)
    return folder


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
