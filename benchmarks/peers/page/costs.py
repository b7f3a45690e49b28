"""What a rewrite loses, and what it takes in time and memory."""

from __future__ import annotations

from collections.abc import Iterator

from .table import Data, bold, table

FIDELITY = """\
Counted are the trees that a tool changed with exit code 0, and on how many of them something was
lost:

- comments: a comment is gone or has another text
- line ends: a file gained another kind of line end, or lost or gained the one at its end
- formatting: ruff would now format a file that it left as it was before
- lint: ruff has a new complaint
- second run: the tool changes the tree again
- files left: the tool leaves files that do not belong to the tree

ruff uses the tree's settings; for every release these are the settings of 0.21.0.
"""
TIME = """\
Each command starts a new process, and the commands of a table take turns. Given are the median, the
quickest and the slowest elapsed time, the median of processor time, and the most memory that one
process used. The tree is the source archive of 0.21.0; for ten times the files, nine copies are
beside it. Bare LibCST starts Python, imports LibCST, parses the {changed} files that the fix
changes, and prints or writes them: the least that a tool on LibCST can cost. The patch was made
beforehand.
"""
LIMITS = {
    "vllm-codemods check": ("bare LibCST, print", 1.2),
    "vllm-codemods apply": ("bare LibCST, write", 1.3),
}
# The share of a core that others may use before figures count as disturbed.
QUIET = 0.05
LOSSES = ("comments", "line_ends", "format", "lint", "again", "left_behind")
LOSS_NAMES = ("comments", "line ends", "formatting", "lint", "second run", "files left")


def fidelity(part: Data) -> str:
    return table(
        ["", "trees", *LOSS_NAMES],
        (
            [bold(row["contender"]), row["trees"], *(row[kind] for kind in LOSSES)]
            for row in part["results"]
        ),
    )


def time(part: Data) -> Iterator[str]:
    yield TIME.format(changed=len(part["changed"]))
    yield disturbed(part["others"])
    for group in dict.fromkeys(row["group"] for row in part["rows"]):
        rows = [row for row in part["rows"] if row["group"] == group]
        files = f" ({rows[0]['files']:,} files)" if "files" in rows[0] else ""
        yield f"### {group.capitalize()}{files}, {rows[0]['runs']} runs\n"
        first = rows[0]
        yield table(
            ["", "ms", "quickest to slowest", f"against {first['what']}", "processor, ms", "MiB"],
            (
                [bold(row["what"]), f"{row['ms']:.0f}", f"{row['from']:.0f} to {row['to']:.0f}",
                 f"{row['ms'] / first['ms']:.3g}", f"{row['cpu_ms']:.0f}", f"{row['mib']:.0f}"]
                for row in rows
            ),
        )  # fmt: skip
    yield from limits(part)
    yield from divided(part)


def limits(part: Data) -> Iterator[str]:
    """Whether the tool keeps to what it may cost."""
    rows = {row["what"]: row for row in part["rows"] if row["group"] == "one release"}
    lines = []
    for what, (bare, limit) in LIMITS.items():
        ratio = rows[what]["ms"] / rows[bare]["ms"]
        verdict = "met" if ratio <= limit else "**missed**"
        lines.append(
            f"- `{what}`: {ratio:.2f} times {bare}; at most {limit} is wanted: {verdict}.\n"
        )
    yield "".join(lines)


def disturbed(others: float) -> str:
    text = f"Meanwhile, other processes used {others:.0%} of one core."
    if others <= QUIET:
        return f"{text}\n"
    return f"{text} **So these figures are a trial, to be measured again on an idle machine.**\n"


def divided(part: Data) -> Iterator[str]:
    """The share of each stage in each verb."""
    verbs = list(dict.fromkeys(row["verb"] for row in part["stages"]))
    stages = list(dict.fromkeys(row["stage"] for row in part["stages"]))
    shares = {(row["verb"], row["stage"]): row["share"] for row in part["stages"]}
    samples = sum(row["samples"] for row in part["stages"])
    yield "### How the time divides\n"
    yield (
        f"From {samples:,} samples of the stack, taken by py-spy on one release. Start includes "
        "all imports.\n"
    )
    yield table(
        ["", *stages],
        ([verb, *(f"{100 * shares[verb, stage]:.0f} %" for stage in stages)] for verb in verbs),
    )
