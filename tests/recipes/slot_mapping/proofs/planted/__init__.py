"""Planted faults, and right fixes written otherwise: data, and how an entry is put into a tree.

Each TOML file here holds entries. `row` is the proof that must catch the fault; an entry without it
is right, and every proof must accept it. `trees` are releases, forks of fixtures/forks, or "base",
which has a monitor and little else; left out, it is "base" and three releases. What an entry
changes is the rewritten tree, mostly the text that the rewrite inserted:

- `early` is placed after the warm-up's guard, `body` in place of all that follows the guard, `head`
  in front of the function, `imports` in front of the whole module;
- `call` stands in place of the worker's call, `import` in place of its import, `at` where a regular
  expression finds a line of the worker, `helper` behind the worker's warm-up method;
- `kernel` stands in place of the kernel's decorator;
- `change` lists replacements, in `file`, of the text `old` or of the first match of `find`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codemods.engine.checkout import Checkout
from codemods.prove.subject import Subject
from tests.forks import trees
from tests.recipes.planting import release_tree, replaced, spoiled, substituted

RELEASES = ("0.21.0", "0.24.0", "0.26.0")
BASE = "base"
FOLDER = Path(__file__).parent
FILES = {
    "kernel": "v1/worker/block_table.py",
    "warmup": "v1/worker/gpu/warmup.py",
    "worker": "v1/worker/gpu_worker.py",
    "runner": "v1/worker/gpu_model_runner.py",
}
NAME = "warmup_v1_slot_mapping_kernel"
GUARD = re.compile(r"    if any\(group\.num_blocks_per_row.*?        return\n", re.S)
FUNCTION = re.compile(rf"@torch.inference_mode\(\)\ndef {NAME}\(")
CALL = re.compile(
    rf"        if not self\.use_v2_model_runner:\n(?: +#.*\n)* +{NAME}\(self\.model_runner\)\n\n?"
)
KERNEL = re.compile(r"^@triton\.jit\(do_not_specialize=.*\)\n(?=def _compute_slot_mapping)", re.M)
METHOD_END = re.compile(r"(?<=\n)(?=    def reset_mm_cache|\Z)")
Editor = Callable[[str, str], str]


@dataclass(frozen=True)
class Entry:
    """One planted tree; `row` is None where it is right."""

    name: str
    trees: tuple[str, ...]
    row: str | None
    data: dict[str, Any]


@cache
def entries() -> tuple[Entry, ...]:
    found: list[Entry] = []
    for path in sorted(FOLDER.glob("*.toml")):
        for data in trees.read_toml(path)["entry"]:
            listed = tuple(data.get("trees", (BASE, *RELEASES)))
            found.append(Entry(data["name"], listed, data.get("row"), data))
    return tuple(found)


@cache
def root(name: str, folder: Path) -> Path:
    """Where a tree of that name is: a release, or a fork written into the folder."""
    if name in RELEASES:
        return release_tree(name)
    fork = "00-monitor-in-triton-utils" if name == BASE else name
    return trees.fork(fork).tree.write_to(folder / fork)


def planted(entry: Entry, checkout: Checkout) -> Subject:
    """The tree as the recipe rewrites it and the entry spoils it, or writes it otherwise."""
    spoils = [(FILES[kind], "kernel" if kind == "runner" else kind, edit)
              for kind, edit in _edits(entry.data)]  # fmt: skip
    return spoiled("slot-mapping", checkout, spoils)


def _edits(data: dict[str, Any]) -> list[tuple[str, Callable[[str], str]]]:
    return [
        (kind, lambda text, make=make, new=data[key]: make(text, new))
        for key, (kind, make) in _PLACES.items()
        if key in data
    ] + [
        (change["file"], lambda text, change=change: replaced(text, change))
        for change in data.get("change", ())
    ]


def _early(text: str, new: str) -> str:
    found = GUARD.search(text)
    assert found, "no guard"
    return text[: found.end()] + textwrap.indent(new, "    ") + text[found.end() :]


def _body(text: str, new: str) -> str:
    found = GUARD.search(text)
    assert found, "no guard"
    return text[: found.end()] + textwrap.indent(new, "    ")


def _head(text: str, new: str) -> str:
    found = FUNCTION.search(text)
    assert found, "no function"
    return text[: found.start()] + new + "\n\n" + text[found.start() :]


def _imports(text: str, new: str) -> str:
    return substituted(text, re.compile(r"^import torch\n", re.M), f"import torch\n{new}")


def _call(text: str, new: str) -> str:
    found = CALL.search(text)
    assert found, "no call"
    return text[: found.start()] + textwrap.indent(new, "        ") + text[found.end() :]


def _import(text: str, new: str) -> str:
    return new + substituted(text, re.compile(rf", {NAME}\n"), "\n")


def _at(text: str, new: dict[str, str]) -> str:
    """The text `insert` in front of the line that `line` finds, indented as that line is."""
    found = re.compile(new["line"], re.M).search(text)
    assert found, f"no {new['line']!r}"
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.start()) + 1
    indent = re.match(r" *", text[start:]).group()  # type: ignore[union-attr]
    place = start if not new.get("behind") else end
    return text[:place] + textwrap.indent(new["insert"], indent) + text[place:]


def _helper(text: str, new: str) -> str:
    found = re.compile(r"^    def (?=compile_or_warm_up_model)", re.M).search(text)
    assert found, "no method"
    return text[: found.start()] + textwrap.indent(new, "    ") + "\n" + text[found.start() :]


_PLACES: dict[str, tuple[str, Callable[[str, Any], str]]] = {
    "early": ("warmup", _early),
    "body": ("warmup", _body),
    "head": ("warmup", _head),
    "imports": ("warmup", _imports),
    "call": ("worker", _call),
    "import": ("worker", _import),
    "at": ("worker", _at),
    "helper": ("worker", _helper),
    "kernel": ("kernel", lambda text, new: substituted(text, KERNEL, new)),
}
