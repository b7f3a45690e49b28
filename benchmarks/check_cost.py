"""What `check` and `apply` cost on a release, against the least that such a tool can cost.

    python benchmarks/check_cost.py [--rounds N]

Five commands take turns, so that a slow moment of the machine hits them alike:

- bare: start Python, import libcst, parse the three files that change, print them;
- check on a folder that holds those three files alone, as they are in the wheel;
- apply on such a folder, as it was before;
- check on a folder that holds the four files that change in the source archive, whose tests count;
- check on the whole source archive (some 5,000 files).

Prints the median wall and processor time of each in ms, how the processor time of the first check
and of apply divides, and three ratios: the median, over the rounds, of the processor times of one
round, which other work of the machine moves least. Exits 1 when check of three files costs more
than 1.2 times the bare script, apply more than 1.3 times, or check of the whole release more than
1.10 times that of its four files. The source archive (34 MB) is downloaded once and kept in the
cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, replace
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
LIMIT_CHECK = 1.2
LIMIT_APPLY = 1.3
LIMIT_WHOLE = 1.10
# As an installed package has it: Python's compiled modules are kept from the first round on.
_ENVIRONMENT = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
STAGES = ("start", "read", "parse", "decide", "print", "write", "end")
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
        applied = copied(FILES, whole, Path(scratch) / "applied")
        four = copied((*FILES, TESTS), whole, Path(scratch) / "four")
        script = Path(scratch) / "bare.py"
        script.write_text(BARE, "utf-8")
        tool = [sys.executable, "-m", "codemods"]
        commands = {
            "bare": Command([sys.executable, str(script), *(str(three / name) for name in FILES)]),
            "check": Command([*tool, "check", str(three)], exits=1),
            "apply": Command([*tool, "apply", str(applied)], restored=(whole, applied)),
            "four files": Command([*tool, "check", str(four)], exits=1),
            "whole release": Command([*tool, "check", str(whole)], exits=1),
        }
        costs = costs_of(commands, options.rounds)
        parts = {verb: stages(commands[verb], options.rounds) for verb in ("check", "apply")}
    print_times(costs, parts)
    return print_ratios(costs, sum(1 for path in whole.rglob("*") if path.is_file()))


@dataclass(frozen=True)
class Command:
    """A command, its exit code, and a tree and the folder that gets its files before each run."""

    words: list[str]
    exits: int = 0
    restored: tuple[Path, Path] | None = None


@dataclass(frozen=True)
class Cost:
    """Seconds elapsed, and of processor time, user and system."""

    wall: float
    cpu: float


def costs_of(commands: dict[str, Command], rounds: int) -> dict[str, list[Cost]]:
    """The costs of each command, taken in turns after one round that is not counted."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            cost = cost_of(command)
            if turn:
                costs[name].append(cost)
    return costs


def cost_of(command: Command) -> Cost:
    """One run of a command, which must exit as expected."""
    if command.restored is not None:
        copied(FILES, *command.restored)
    used = getrusage(RUSAGE_CHILDREN)
    start = perf_counter()
    ran = subprocess.run(command.words, capture_output=True, check=False, env=_ENVIRONMENT)
    wall = perf_counter() - start
    now = getrusage(RUSAGE_CHILDREN)
    if ran.returncode != command.exits:
        raise SystemExit(f"{command.words} exited {ran.returncode}: {ran.stderr.decode()}")
    return Cost(wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)


def stages(command: Command, rounds: int) -> dict[str, float]:
    """The median processor time of each stage of the tool's command, in ms."""
    found: dict[str, list[float]] = {stage: [] for stage in STAGES}
    with tempfile.TemporaryDirectory(prefix="check-cost-") as scratch:
        table = Path(scratch) / "stages.json"
        verb = command.words[command.words.index("codemods") + 1 :]
        words = [sys.executable, str(Path(__file__).with_name("stages_of.py")), str(table), *verb]
        for _ in range(rounds):
            whole = cost_of(replace(command, words=words)).cpu * 1000
            spent = json.loads(table.read_text("utf-8"))
            spent["end"] = whole - sum(spent.values())
            for stage in STAGES:
                found[stage].append(spent.get(stage, 0.0))
    return {stage: median(spent) for stage, spent in found.items()}


def print_times(costs: dict[str, list[Cost]], parts: dict[str, dict[str, float]]) -> None:
    print(f"{'':<14}{'wall':>8}{'cpu':>8}   (ms)")
    for name, found in costs.items():
        wall, cpu = median(one.wall for one in found), median(one.cpu for one in found)
        print(f"{name:<14}{wall * 1000:8.0f}{cpu * 1000:8.0f}")
    print(f"\n{'':<14}{''.join(f'{stage:>8}' for stage in STAGES)}   (ms)")
    for name, spent in parts.items():
        print(f"{name:<14}{''.join(f'{spent[stage]:8.0f}' for stage in STAGES)}")
    print()


def print_ratios(costs: dict[str, list[Cost]], count: int) -> int:
    """Print the ratios; the exit code."""
    code = 0
    for name, other, limit in (
        ("check", "bare", LIMIT_CHECK),
        ("apply", "bare", LIMIT_APPLY),
        ("whole release", "four files", LIMIT_WHOLE),
    ):
        pairs = zip(costs[name], costs[other], strict=True)
        ratio = median(one.cpu / least.cpu for one, least in pairs)
        print(f"{f'{name} / {other}':<28}{ratio:.2f}  (at most {limit})")
        code = 1 if ratio > limit else code
    print(f"the whole release has {count} files")
    return code


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
