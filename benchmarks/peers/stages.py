"""How the time of a verb divides, from samples of its stack: start, read, parse, decide and so on.

py-spy looks at the process from outside a thousand times a second, so that nothing is added to
what it runs, and a native parser is seen too.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from . import project
from .git import git

RATE = 1000


class Stage(str, Enum):
    START = "start"
    READ = "read"
    PARSE = "parse"
    DECIDE = "decide"
    PRINT = "print"
    WRITE = "write"


# Of a sample's stack, the first of these that any frame matches.
_RULES = (
    (None, re.compile(r"^wait \(threading\.py|^Condition\.wait ")),
    (Stage.START, re.compile(r"<frozen importlib")),
    (Stage.PARSE, re.compile(r"^(parse_module|parse) \((libcst|ast)\b|^parse \(ast\.py")),
    (Stage.READ, re.compile(r"\(codemods/(engine/)?(checkout|git)\.py|^(walk|scandir) \(os\.py")),
    (
        Stage.PRINT,
        re.compile(r"\(codemods/(output/\w+|report|markdown|patch|streams|cli/streams)\.py"),
    ),
    (Stage.WRITE, re.compile(r"\(codemods/write/")),
    (Stage.DECIDE, re.compile(r"\(codemods/(?!__main__|cli|options)")),
)


def of(verb: str, tree: Path, programs: Path, rounds: int) -> list[dict[str, str | float | int]]:
    """The share of each stage, and the samples it rests on; `tree` is a clean repository."""
    found: Counter[Stage] = Counter()
    for _ in range(rounds):
        for stack, samples in sampled([*project.COMMAND, verb, str(tree)], programs):
            if (stage := stage_of(stack)) is not None:
                found[stage] += samples
        git(tree, "reset", "-q", "--hard")
    whole = found.total()
    return [
        {
            "verb": verb,
            "stage": stage.value,
            "share": round(found[stage] / whole, 4),
            "samples": found[stage],
        }
        for stage in Stage
    ]


def stage_of(stack: list[str]) -> Stage | None:
    """The stage of one sample; None where its thread only waits for another."""
    for stage, pattern in _RULES:
        frames = stack[-1:] if stage is None else stack
        if any(pattern.search(frame) for frame in frames):
            return stage
    return Stage.START


def sampled(command: list[str], programs: Path) -> Iterator[tuple[list[str], int]]:
    """The stacks that one run was seen in, outermost frame first, and how often."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "stacks"
        options = ["--rate", str(RATE), "--format", "raw", "--output", str(out)]
        subprocess.run(
            [str(programs / "py-spy"), "record", *options, "--", *command],
            capture_output=True,
            check=False,
        )
        for line in out.read_text("utf-8").splitlines():
            stack, _, samples = line.rpartition(" ")
            yield stack.split(";"), int(samples)
