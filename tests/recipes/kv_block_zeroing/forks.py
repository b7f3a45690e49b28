"""The trees under fixtures/forks-kv, and their golden diffs: `python -m …kv_block_zeroing.forks`.

fixtures/forks-kv/README.md describes the format.
"""

from __future__ import annotations

import difflib
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan
from codemods.engine.planning import make_plan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it where the standard library has none

FIXTURES = Path(__file__).parents[3] / "fixtures"
FORKS = FIXTURES / "forks-kv"
BASES = (FIXTURES / "forks" / "base", FORKS / "base")
RECIPE = "kv-block-zeroing"

Files = dict[str, bytes]


@dataclass(frozen=True)
class Fork:
    """One folder: its name, its tree by POSIX path, and what the tool must find."""

    name: str
    files: Files
    expected: Mapping[str, Any]

    @property
    def golden(self) -> Path:
        return FORKS / self.name / "expected.diff"


def names() -> list[str]:
    return sorted(path.parent.name for path in FORKS.glob("*/fork.toml"))


@cache
def fork(name: str) -> Fork:
    data = _toml(FORKS / name / "fork.toml")
    texts = {
        path.relative_to(base / "vllm").as_posix(): path.read_text("utf-8")
        for base in BASES
        for path in sorted((base / "vllm").rglob("*.py"))
    }
    for change in (*data.get("change", ()), *data.get("remove", ()), *data.get("add", ())):
        _make(change, texts, name)
    package = data.get("package", "vllm")
    files = {}
    for path, text in texts.items():
        renamed = re.sub(r"\bvllm\b", package, text)
        ends = renamed.replace("\n", "\r\n") if data.get("line_ends") == "crlf" else renamed
        files[f"{package}/{path}"] = ends.encode()
    return Fork(name, files, _toml(FORKS / name / "expected.toml"))


def _make(change: Mapping[str, str], texts: dict[str, str], name: str) -> None:
    file = change["file"]
    if "old" in change:
        assert texts[file].count(change["old"]) == 1, f"{name}: {change['old']!r} in {file}"
        texts[file] = texts[file].replace(change["old"], change["new"])
    elif "new" in change:
        texts[file] = change["new"]
    else:
        del texts[file]


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def write(files: Mapping[str, bytes], root: Path) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def planned(files: Files, *recipes: str) -> Plan:
    """What the recipes (this one alone where none is named) would do to a tree."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout.find(write(files, Path(folder)))
        return make_plan(checkout, tuple(map(registry.get, recipes or (RECIPE,))))


def rewritten(files: Files, plan: Plan) -> Files:
    return {**files, **{change.path: change.after for change in plan.changes}}


def diff(before: Files, after: Files) -> str:
    """The difference as a person reads it, CRLF shown as LF."""
    lines: list[str] = []
    for name in sorted(before):
        was, now = (
            files[name].decode().replace("\r\n", "\n").splitlines(keepends=True)
            for files in (before, after)
        )
        lines += difflib.unified_diff(was, now, f"a/{name}", f"b/{name}")
    return "".join(lines)


def main() -> None:
    for name in names():
        one = fork(name)
        text = diff(one.files, rewritten(one.files, planned(one.files)))
        if text:
            one.golden.write_text(text, "utf-8")
        else:
            one.golden.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
