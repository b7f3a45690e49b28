"""Whatever a fork mixes, the rewrite is right by every judge, or not a byte changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from codemods.engine.plan import Verdict
from tests.forks import trees
from tests.forks.judged import Judged, judged
from tests.forks.mixing import BYTES, CHANGES
from tests.forks.profiles import examples, part_of
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, Tree

# Trees whose worker, tables and warm-up module have the shapes that the mixes look for.
WORKERS = (
    "00-monitor-in-triton-utils",
    "07-else-with-if",
    "08-earlier-if-on-the-flag",
    "13-monitor-from-elsewhere",
    "00-monitor-in-helper-method",
    "05-engine-started-before-call",
)
TABLES = (
    "00-monitor-in-triton-utils",
    "01-several-launches",
    "16-kernel-imported",
    "00-monitor-in-utils",
    "04-lists-a-constant",
    "10-names-that-share-the-prefix",
)
ANY = tuple(name for name in trees.names() if name != "14-no-block-table")


def mixed(data: st.DataObject, tree: Tree, file: str, count: int) -> Tree:
    """The tree with up to `count` changes to one file, still in LF and UTF-8."""

    def pick(options: Sequence[Any]) -> Any:
        return options[data.draw(st.integers(0, len(options) - 1))]

    text = tree.inside[file].decode()
    for _ in range(data.draw(st.integers(1, count))):
        text = pick(CHANGES[file])(text, pick)
    return tree.edited(file, text.encode())


def one_in_five(data: st.DataObject) -> bool:
    """A second run costs as much as the first, so not every case gets one."""
    return data.draw(st.integers(0, 4)) == 1


def check(tree: Tree, *, again: bool = False) -> Judged:
    result = judged(tree, again=again)
    if result.faults:
        note(f"{result.plan.verdict.value}: " + "; ".join(o.detail for o in result.plan.outcomes))
        note(result.diff)
    assert result.faults == ()
    return result


@examples(500)
@given(st.data())
def test_a_mixed_worker_is_right_or_refused(data: st.DataObject) -> None:
    tree = trees.fork(data.draw(st.sampled_from(WORKERS))).tree
    check(mixed(data, tree, WORKER, 4))


@examples(420)
@given(st.data())
def test_a_mixed_block_table_is_right_or_refused(data: st.DataObject) -> None:
    tree = trees.fork(data.draw(st.sampled_from(TABLES))).tree
    check(mixed(data, tree, BLOCK_TABLE, 3))


@examples(200)
@given(st.data())
def test_a_mixed_warm_up_module_is_right_or_refused(data: st.DataObject) -> None:
    tree = trees.fork("00-monitor-in-triton-utils").tree
    check(mixed(data, tree, WARMUP, 3), again=one_in_five(data))


@examples(240)
@given(st.data())
def test_any_bytes_are_kept_or_refused(data: st.DataObject) -> None:
    tree = trees.fork("00-monitor-in-triton-utils").tree
    for file in (WORKER, BLOCK_TABLE, WARMUP):
        if data.draw(st.booleans()):
            tree = mixed(data, tree, file, 2)
        form = BYTES[data.draw(st.sampled_from(sorted(BYTES)))]
        tree = tree.edited(file, form(tree.inside[file].decode()))
    check(tree, again=one_in_five(data))


@examples(300)
@given(st.data())
def test_any_fork_mixed_everywhere_is_right_or_refused(data: st.DataObject) -> None:
    tree = trees.fork(data.draw(st.sampled_from(ANY))).tree
    for file in (WORKER, BLOCK_TABLE, WARMUP):
        if file in tree.inside and b"\r" not in tree.inside[file]:
            tree = mixed(data, tree, file, 2)
    check(tree, again=one_in_five(data))


@pytest.mark.parametrize("place", part_of(range(60)))
def test_a_fixable_tree_is_not_refused_for_a_comment(place: int) -> None:
    tree = trees.fork("00-monitor-in-triton-utils").tree
    lines = tree.inside[WORKER].decode().splitlines(keepends=True)
    lines.insert(place, "# a comment\n")
    result = check(tree.edited(WORKER, "".join(lines).encode()))
    assert result.plan.verdict is Verdict.FIXABLE
