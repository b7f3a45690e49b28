"""The trees under fixtures/forks: one base, and for each fork the changes it makes to it.

fixtures/forks/README.md describes the format. A `Tree` holds bytes in memory; `write_to` lays
them out on disk.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it where the standard library has none

FORKS = Path(__file__).parents[2] / "fixtures" / "forks"
BASE_PACKAGE = "vllm"

BLOCK_TABLE = "v1/worker/block_table.py"
WORKER = "v1/worker/gpu_worker.py"
WARMUP = "v1/worker/gpu/warmup.py"


@dataclass(frozen=True)
class Tree:
    """A checkout in memory: `files` maps POSIX paths, relative to its root, to bytes."""

    files: Mapping[str, bytes]
    package: str = BASE_PACKAGE

    def write_to(self, root: Path) -> Path:
        for name, data in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return root

    @property
    def inside(self) -> dict[str, bytes]:
        """The package's own files, by their path relative to the package."""
        prefix = self.package + "/"
        return {
            name.removeprefix(prefix): data
            for name, data in self.files.items()
            if name.startswith(prefix)
        }

    def changed(self, changes: Mapping[str, bytes]) -> Tree:
        """The same tree with some files' bytes replaced; paths are relative to the root."""
        return Tree({**self.files, **changes}, self.package)

    def edited(self, inside: str, data: bytes) -> Tree:
        return self.changed({f"{self.package}/{inside}": data})


@dataclass(frozen=True)
class Fork:
    """One folder of fixtures/forks: what the fork did, its tree, and what the tool must do."""

    name: str
    what: str
    tree: Tree

    @property
    def number(self) -> int:
        """The kind's number: 0 a release as it is, 16 and more what two kinds make together."""
        return int(self.name.split("-", 1)[0])

    @property
    def folder(self) -> Path:
        return FORKS / self.name

    @property
    def expected(self) -> dict[str, Any]:
        return read_toml(self.folder / "expected.toml")

    @property
    def golden(self) -> bytes:
        path = self.folder / "expected.diff"
        return path.read_bytes() if path.exists() else b""


def names() -> list[str]:
    return sorted(path.parent.name for path in FORKS.glob("*/fork.toml"))


@cache
def fork(name: str) -> Fork:
    data = read_toml(FORKS / name / "fork.toml")
    package = data.get("package", BASE_PACKAGE)
    under = data.get("under", "")
    texts = {path: _renamed(text, package) for path, text in _texts(name).items()}
    if data.get("line_ends") == "crlf":
        texts = {path: text.replace("\n", "\r\n") for path, text in texts.items()}
    home = f"{under}/{package}" if under else package
    files = {_joined(home, path): text.encode("utf-8") for path, text in texts.items()}
    return Fork(name, data["what"], Tree(files, home))


def _texts(name: str) -> dict[str, str]:
    """The fork's files in LF, before the package is renamed, by path relative to the package."""
    data = read_toml(FORKS / name / "fork.toml")
    texts = dict(_base())
    for change in _changes(name):
        _make(change, texts, name)
    assert texts, data
    return texts


def _changes(name: str) -> list[dict[str, Any]]:
    data = read_toml(FORKS / name / "fork.toml")
    earlier = [change for other in data.get("from", ()) for change in _changes(other)]
    return earlier + data.get("change", []) + data.get("remove", []) + data.get("add", [])


def _make(change: Mapping[str, str], texts: dict[str, str], name: str) -> None:
    file = change["file"]
    if "old" in change:
        count = texts[file].count(change["old"])
        assert count == 1, f"{name}: the text to change is {count} times in {file}"
        texts[file] = texts[file].replace(change["old"], change["new"])
    elif "new" in change:
        texts[file] = change["new"]
    else:
        texts.pop(file, None)


@cache
def _base() -> dict[str, str]:
    home = FORKS / "base" / BASE_PACKAGE
    return {
        path.relative_to(home).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(home.rglob("*.py"))
    }


def _renamed(text: str, package: str) -> str:
    return text if package == BASE_PACKAGE else re.sub(r"\bvllm\b", package, text)


def _joined(home: str, path: str) -> str:
    parts: list[str] = home.split("/")
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


@cache
def read_toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        return tomllib.load(stream)
