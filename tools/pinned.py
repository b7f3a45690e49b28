"""fixtures/releases.toml as data: the known releases, and what the tool must say of each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.engine import registry
from codemods.engine.plan import Reason, Status, Verdict
from codemods.release.names import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "fixtures" / "releases.toml"
EDITS = ("kernel", "warmup", "worker", "unit-tests")


@dataclass(frozen=True)
class ExpectedEdit:
    """How one edit must end."""

    edit: str
    status: Status
    reason: Reason


@dataclass(frozen=True)
class Expectation:
    """What a recipe must say of a release; `name` is its table in the list, `why` for readers."""

    recipe: str
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
    """One archive of one release; `archive` and `files` are empty until they are first pinned.

    `expected` is of the recipe that runs by default, `also` of the others.
    """

    version: str
    source: Source
    expected: Expectation
    archive: str
    files: tuple[File, ...]
    also: tuple[Expectation, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(map(int, self.version.split(".")))


def load(path: Path = LIST) -> tuple[Pinned, ...]:
    """Every pinned archive, oldest release first, a release's wheel before its sdist."""
    data = tomllib.loads(path.read_text("utf-8"))
    expectations = {
        name: _expectation(registry.DEFAULT, name, table) for name, table in data["expect"].items()
    }
    pinned = [
        Pinned(
            table["version"],
            Source(table["source"]),
            expectations[table["expect"]],
            table.get("archive", ""),
            tuple(File(name, digest) for name, digest in table.get("sha256", {}).items()),
            tuple(
                _expectation(recipe, name, also)
                for recipe, tables in data["also"].items()
                for name, also in tables.items()
                if {table["version"], f"{table['version']}-{table['source']}"}
                & set(also["releases"])
            ),
        )
        for table in data["release"]
    ]
    return tuple(sorted(pinned, key=lambda one: (one.numbers, one.source is Source.SDIST)))


def _expectation(recipe: str, name: str, table: Mapping[str, Any]) -> Expectation:
    edits = (ExpectedEdit(edit, Status(table[edit][0]), Reason(table[edit][1])) for edit in EDITS)
    return Expectation(recipe, name, Verdict(table["verdict"]), tuple(edits), table["why"])
