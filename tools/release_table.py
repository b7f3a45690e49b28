"""Write the README's table of releases from fixtures/releases.toml.

    python tools/release_table.py [--check]

With --check nothing is written, and the exit is 1 when the README says something else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pinned import LIST, ROOT, Expectation, ExpectedEdit, Pinned, load

from codemods.engine.plan import Status
from codemods.release.names import Source

README = ROOT / "README.md"
BEGIN = "<!-- releases:begin -->"
END = "<!-- releases:end -->"
_EDITS = ("kernel", "warmup", "worker")


def table(releases: Sequence[Pinned]) -> str:
    """The table as Markdown: a row for neighbouring releases of which the same is expected.

    Raises ValueError where a release lacks what is expected of a recipe.
    """
    wheels = [pinned for pinned in releases if pinned.source is Source.WHEEL]
    others = tuple(one.recipe for one in wheels[0].also)
    for pinned in wheels:
        _require_every_recipe(pinned, others)
    rows = [
        f"| vLLM | verdict | {' | '.join(_EDITS)} | why | {' | '.join(others)} |",
        "|---" * (len(_EDITS) + 3 + len(others)) + "|",
    ]
    for (expected, *also), group in groupby(wheels, key=_expected):
        names = ", ".join(pinned.version for pinned in group)
        cells = [names, f"`{expected.verdict.value}`", *_cells(expected), expected.why]
        cells += [f"`{one.verdict.value}`: {one.why}" for one in also]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _require_every_recipe(pinned: Pinned, recipes: Sequence[str]) -> None:
    found = [one.recipe for one in pinned.also]
    for recipe in recipes:
        if found.count(recipe) != 1:
            raise ValueError(
                f"{pinned.version} is in {found.count(recipe)} tables [also.{recipe}.…] of "
                f"{LIST.name}: it must be in one"
            )


def filled(text: str, releases: Sequence[Pinned]) -> str:
    """The README's text with the table between its markers.

    Raises ValueError without them, and as `table` does.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{table(releases)}\n{END}{after}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="the README's table of releases")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 on a difference"
    )
    parser.add_argument("readme", nargs="?", type=Path, default=README)
    parser.add_argument("--releases", type=Path, default=LIST, help=f"in place of {LIST.name}")
    options = parser.parse_args(argv)
    text = options.readme.read_text("utf-8")
    try:
        fresh = filled(text, load(options.releases))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if fresh == text:
        return 0
    if options.check:
        print("the table of releases is stale: run tools/release_table.py", file=sys.stderr)
        return 1
    options.readme.write_text(fresh, "utf-8")
    return 0


def _expected(pinned: Pinned) -> tuple[Expectation, ...]:
    """What is expected of a release, of every recipe."""
    return (pinned.expected, *pinned.also)


def _cells(expected: Expectation) -> list[str]:
    edits = {one.edit: one for one in expected.edits}
    return [_cell(edits[edit]) for edit in _EDITS]


def _cell(expected: ExpectedEdit) -> str:
    # Why an edit is not needed is what the verdict and the last column say.
    words = {Status.EDIT: expected.reason.value, Status.NOT_NEEDED: "-"}
    return words.get(expected.status, expected.status.value)


if __name__ == "__main__":
    sys.exit(main())
