"""What `vllm-codemods check --ref` costs on 30 branches, against taking their files out with git.

    python benchmarks/refs.py [--rounds N]

The repository is vLLM 0.21.0's whole source archive and 30 branches of two kinds: in `alike/*` the
files that the tool reads are the same, in `other/*` each branch has another worker and block table.
Four commands take turns:

- check of the 30 alike branches, and of the 30 that differ;
- 30 times `git archive BRANCH vllm tests | tar -x`, the package and its tests into a new folder;
- 30 times the same of only the files that check reads.

Prints median wall times in ms and two ratios. Exits 1 when check of the differing branches costs
more than 3 times the package and tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from check_cost import FILES, TESTS, whole_release

from codemods.release import ReleaseError

BRANCHES = 30
LIMIT = 3.0
READ = (*FILES, TESTS, "vllm/v1/worker/gpu_model_runner.py")
IDENTITY = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.invalid")


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of check --ref on 30 branches")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each command (5)")
    options = parser.parse_args()
    try:
        whole = whole_release()
    except (ReleaseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="refs-") as scratch:
        repository = made(whole, Path(scratch) / "repository")
        check = [sys.executable, "-m", "codemods", "check", str(repository), "--ref"]
        commands = {
            "check, alike": [*check, "alike/*"],
            "check, differing": [*check, "other/*"],
            "archive | tar, whole": archives(repository, Path(scratch), ("vllm", "tests")),
            "archive | tar, read": archives(repository, Path(scratch), READ),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(options.rounds + 1):
            for name, command in commands.items():
                start = perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
                if turn:
                    times[name].append(perf_counter() - start)
    return report({name: median(found) for name, found in times.items()})


def made(whole: Path, folder: Path) -> Path:
    """The repository with its branches."""
    folder.mkdir()
    subprocess.run(["cp", "-r", f"{whole}/.", str(folder)], check=True)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "0.21.0")
    start = git(folder, "rev-parse", "HEAD").strip()
    for number in range(BRANCHES):
        for kind, names in (("alike", ("README.md",)), ("other", FILES)):
            git(folder, "checkout", "-q", "-b", f"{kind}/{number}", start)
            for name in names:
                with (folder / name).open("a") as file:
                    file.write(f"\n# branch {number}\n")
            git(folder, "commit", "-q", "-a", "-m", f"{kind} {number}")
    git(folder, "gc", "-q")
    return folder


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def archives(repository: Path, scratch: Path, names: tuple[str, ...]) -> list[str]:
    """A shell's loop that takes files of each differing branch out into a folder of its own."""
    loop = (
        'for n in $(seq 0 "$1"); do rm -rf "$2/out" && mkdir "$2/out" && '
        'git -C "$3" archive "other/$n" "${@:4}" | tar -x -C "$2/out"; done'
    )
    return ["bash", "-c", loop, "-", str(BRANCHES - 1), str(scratch), str(repository), *names]


def report(times: dict[str, float]) -> int:
    """Print the table; the exit code."""
    for name, seconds in times.items():
        print(f"{name:<24}{seconds * 1000:8.0f} ms")
    whole = times["check, differing"] / times["archive | tar, whole"]
    read = times["check, differing"] / times["archive | tar, read"]
    print(f"check, differing / archive | tar of the package and tests {whole:.2f}  (max {LIMIT})")
    print(f"check, differing / archive | tar of the files it reads    {read:.2f}")
    return 1 if whole > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
