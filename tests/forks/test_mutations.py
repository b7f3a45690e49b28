"""Real releases with one anchor at a time deleted, corrupted or doubled: right, or refused.

The few files of a release that are read here cannot run as an engine. So the judges are the bytes,
the worker's method with stand-ins for all it calls, and a second run of the tool.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from codemods import release
from codemods.engine.plan import Verdict
from tests.forks.judged import judged
from tests.forks.profiles import FRESH, part_of
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, Tree

pytestmark = pytest.mark.network
# A second one, whose anchors are mostly the same, is left to a search.
RELEASES = ("0.21.0", "0.26.0") if FRESH else ("0.21.0",)
# The names whose statements the recipe must find, or must not mistake for another.
READ = {
    *("Worker", "BlockTable", "MultiGroupBlockTable", "compile_or_warm_up_model"),
    *("compute_slot_mapping", "add_row", "clear_row", "commit_block_table"),
    *("triton", "Any", "warmup_kernels", "set_random_seed", "get_pp_group"),
}
FILES = ("__init__.py", "_version.py", BLOCK_TABLE, WORKER, WARMUP)


@dataclass(frozen=True)
class Anchor:
    """One statement of a release, by its lines (from 1, both included) and its column."""

    file: str
    first: int
    last: int
    column: int
    alone: bool


@cache
def sources(version: str) -> Tree:
    try:
        home = release.fetch(version) / "vllm"
    except release.UnreachableError as error:
        pytest.skip(f"no package index: {error}")
    return Tree({f"vllm/{name}": (home / name).read_bytes() for name in FILES})


def anchors(version: str) -> list[Anchor]:
    """The statements that the recipe reads: imports, classes, methods, kernels, every step."""
    tree = sources(version)
    found = []
    for file in (BLOCK_TABLE, WORKER, WARMUP):
        for node, block in _statements(ast.parse(tree.inside[file])):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            found.append(
                Anchor(file, first, node.end_lineno or first, node.col_offset, len(block) == 1)
            )
    return found


def _statements(module: ast.Module) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and not READ & {alias.name for alias in node.names}:
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
            yield node, module.body
        if isinstance(node, ast.ClassDef) and node.name in READ:
            yield node, module.body
            for method in node.body:
                if getattr(method, "name", "") in READ:
                    yield method, node.body
                    yield from _inner(method, 2)


def _inner(node: ast.AST, depth: int) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    for part in ("body", "orelse") if depth else ():
        block = getattr(node, part, [])
        # The `if` of an `elif` has no lines of its own to take away.
        elif_arm = part == "orelse" and len(block) == 1 and isinstance(block[0], ast.If)
        for statement in block:
            if not elif_arm:
                yield statement, block
            yield from _inner(statement, depth if elif_arm else depth - 1)


def without(tree: Tree, anchor: Anchor) -> Tree:
    lines = tree.inside[anchor.file].split(b"\n")
    kept = [b" " * anchor.column + b"pass"] if anchor.alone else []
    return _joined(tree, anchor, [*lines[: anchor.first - 1], *kept, *lines[anchor.last :]])


def twice(tree: Tree, anchor: Anchor) -> Tree:
    lines = tree.inside[anchor.file].split(b"\n")
    return _joined(
        tree,
        anchor,
        [*lines[: anchor.last], *lines[anchor.first - 1 : anchor.last], *lines[anchor.last :]],
    )


def cut(tree: Tree, anchor: Anchor) -> Tree:
    """The statement's first line loses its second half."""
    lines = tree.inside[anchor.file].split(b"\n")
    line = lines[anchor.first - 1]
    lines[anchor.first - 1] = line[: anchor.column + (len(line) - anchor.column) // 2]
    return _joined(tree, anchor, lines)


def misspelt(tree: Tree, anchor: Anchor) -> Tree:
    """Every name that the recipe could look for is another one, in this statement."""
    lines = tree.inside[anchor.file].split(b"\n")
    part = b"\n".join(lines[anchor.first - 1 : anchor.last])
    for word in (b"warm", b"slot", b"jit", b"v2", b"num_tokens", b"Worker", b"Block", b"dummy"):
        part = part.replace(word, word[::-1])
    return _joined(tree, anchor, [*lines[: anchor.first - 1], part, *lines[anchor.last :]])


def _joined(tree: Tree, anchor: Anchor, lines: list[bytes]) -> Tree:
    return tree.edited(anchor.file, b"\n".join(lines))


CHANGES = {"deleted": without, "doubled": twice, "cut": cut, "misspelt": misspelt}


@pytest.mark.parametrize("version", RELEASES)
def test_the_release_as_it_is_gets_a_right_rewrite(version: str) -> None:
    result = judged(sources(version), runs=False)
    assert result.plan.verdict is Verdict.FIXABLE
    assert result.faults == (), result.diff


@pytest.mark.parametrize(
    ("version", "change"),
    [("0.21.0", change) for change in CHANGES] + [(other, "deleted") for other in RELEASES[1:]],
)
def test_one_anchor_gone_wrong_is_refused_or_still_right(version: str, change: str) -> None:
    tree = sources(version)
    wrong = {}
    for number, anchor in enumerate(part_of(anchors(version), list(CHANGES).index(change))):
        mutant = CHANGES[change](tree, anchor)
        # A second run costs as much as the first, so not every mutant gets one.
        result = judged(mutant, again=FRESH or number % 4 == 0, runs=False)
        if result.faults:
            wrong[f"{anchor.file}:{anchor.first}"] = (result.faults, result.diff)
    assert wrong == {}


def test_the_anchors_are_many() -> None:
    assert len(anchors("0.21.0")) > 60
