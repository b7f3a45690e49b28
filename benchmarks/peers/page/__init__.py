"""docs/benchmarks.md and docs/benchmarks.svg, from docs/benchmarks.json and nothing else."""

from __future__ import annotations

from pathlib import Path

from .better import better
from .chart import Bar, Panel, chart
from .costs import FIDELITY, fidelity, time
from .landing import contenders, landing, needy, outcomes
from .table import Data, about

HEAD = """\
# Compared with what people use today

Written by `benchmarks/peers.py` from `docs/benchmarks.json`; a test fails where they differ.
`make peers` measures everything again.

To bring a fix into a tree, people use a patch or a search-and-replace rule. This page compares:

- `git apply`, `git apply -3`, GNU `patch` with its default fuzz, and `wiggle`. Each gets two
  patches: the one that this tool makes for 0.21.0, and the one that it makes for the nearest other
  release, whose files differ from the tree's in the fewest lines. `git apply -3` has the objects
  that it needs; `patch` runs with `-N`, so that it asks nothing. The paths are those of the tree.
- A rule file for ast-grep and one for semgrep, written for this page: `benchmarks/peers/rules/`.
  They were improved on these same trees, which favours them.

0.21.0 itself is among the trees, so its patch is also tried where it was made.

![How often the fix ends up right](benchmarks.svg)
"""


def write(data: Data, folder: Path) -> None:
    (folder / "benchmarks.md").write_text(page(data), "utf-8")
    (folder / "benchmarks.svg").write_text(picture(data), "utf-8")


def page(data: Data) -> str:
    parts = [HEAD]
    if "landing" in data:
        parts += [
            "## Does the fix end up right\n",
            *landing(data["landing"]),
            about(data["landing"]),
        ]
    if "fidelity" in data:
        parts += [
            "## Side effects\n",
            FIDELITY,
            fidelity(data["fidelity"]),
            about(data["fidelity"]),
        ]
    if "time" in data:
        parts += ["## Time and memory\n", *time(data["time"]), about(data["time"])]
    parts += ["## Where others do better\n", better(data)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def picture(data: Data) -> str:
    """The two kinds of tree apart: one is vLLM's, the other this project's own."""
    part = data["landing"]
    names = contenders(part)
    panels = []
    for kind, text in (("release", "vLLM releases"), ("fork", "small trees of this project")):
        trees = needy(part, kind)
        found = [outcomes(part, name, trees) for name in names]
        bars = [Bar(one["right"], one["wrong"], one["refused"]) for one in found]
        panels.append(Panel(f"{len(trees)} {text}", bars))
    return chart("How often the fix ends up right", names, panels)
