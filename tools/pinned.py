"""fixtures/releases.toml as data: the known releases, and what the tool must say of each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from codemods.engine import registry
from codemods.engine.plan import Reason, Status, Verdict
from codemods.release.names import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "fixtures" / "releases.toml"
# The recipe that the expectations are of.
RECIPE = registry.get(registry.DEFAULT)


@dataclass(frozen=True)
class ExpectedEdit:
    """How one edit must end."""

    edit: str
    status: Status
    reason: Reason


@dataclass(frozen=True)
class Expectation:
    """What the tool must say of a release; `name` is its table in the list, `why` for readers."""

    name: str
    verdict: Verdict
    edits: tuple[ExpectedEdit, ...]
    why: str


@dataclass(frozen=True)
class File:
    """One file of a release, POSIX and relative to its tree, and its SHA-256 in hex."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Pinned:
    """One archive of one release; `archive` and `files` are empty until they are first pinned."""

    version: str
    source: Source
    expected: Expectation
    archive: str
    files: tuple[File, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(map(int, self.version.split(".")))


def load(path: Path = LIST) -> tuple[Pinned, ...]:
    """Every pinned archive, oldest release first, a release's wheel before its sdist."""
    data = tomllib.loads(path.read_text("utf-8"))
    expectations = {
        name: Expectation(
            name,
            Verdict(table["verdict"]),
            tuple(
                ExpectedEdit(edit, Status(table[edit][0]), Reason(table[edit][1]))
                for edit in RECIPE.edits
            ),
            table["why"],
        )
        for name, table in data["expect"].items()
    }
    pinned = [
        Pinned(
            table["version"],
            Source(table["source"]),
            expectations[table["expect"]],
            table.get("archive", ""),
            tuple(File(name, digest) for name, digest in table.get("sha256", {}).items()),
        )
        for table in data["release"]
    ]
    return tuple(sorted(pinned, key=lambda one: (one.numbers, one.source is Source.SDIST)))
