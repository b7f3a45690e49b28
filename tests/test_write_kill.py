"""A write that is stopped at every moment: the tree is wholly old or wholly new, or found again."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from planned_tree import (
    PlannedTree,
    count_calls,
    in_child,
    kill_after_renames,
    kill_at,
    planned_tree,
    tree_in_memory,
)

from codemods.write import describe, pending, recover, write


@pytest.fixture
def tree() -> Iterator[PlannedTree]:
    with tree_in_memory() as made:
        yield made


def test_after_sigkill_at_any_call_the_next_run_finds_it_and_ends_it(tree: PlannedTree) -> None:
    ends, mixed = [], 0
    for step in range(1, count_calls(tree) + 1):
        assert in_child(lambda: write(tree.plan), kill_at(step, signal.SIGKILL)) == -signal.SIGKILL
        left, targets = tree.content(), tree.files()
        if targets not in (tree.old, tree.new):
            mixed += 1
            journal = pending(tree.root)
            assert journal is not None
            assert "was interrupted" in describe(journal)
        assert tree.content() == left, "only looking must not change a byte"
        said = recover(tree.root)
        ends.append(tree.wholly())
        assert ends[-1] in ("old", "new"), (step, ends[-1], said)
        if targets == tree.new:
            assert ends[-1] == "new", "what was completed is not undone"
        assert recover(tree.root) == ""
        assert pending(tree.root) is None
        tree.reset()
    assert mixed > 1
    assert {"old", "new"} == set(ends)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_at_any_call_the_tree_is_wholly_old_or_new(
    tree: PlannedTree, number: signal.Signals
) -> None:
    honoured = 130 if number is signal.SIGINT else -number
    seen = set()
    for step in range(1, count_calls(tree) + 1):
        code = in_child(lambda: write(tree.plan), kill_at(step, number))
        seen.add((code, tree.wholly()))
        tree.reset()
    # Before anything is written and after everything is, the signal acts as ever; between, exit 4.
    assert seen == {(honoured, "old"), (4, "old"), (honoured, "new")}


def test_an_ignored_signal_stays_ignored(tree: PlannedTree) -> None:
    def nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        write(tree.plan)

    assert in_child(nohup, kill_at(40, signal.SIGHUP)) == 0
    assert tree.wholly() == "new"


def test_a_recovery_killed_at_any_call_is_ended_by_the_next(tree: PlannedTree) -> None:
    total = count_calls(tree)
    for step in range(total // 2, total + 1, 9):
        for later in range(1, 200, 5):
            in_child(lambda: write(tree.plan), kill_at(step, signal.SIGKILL))
            code = in_child(lambda: recover(tree.root), kill_at(later, signal.SIGKILL))
            recover(tree.root)
            assert tree.wholly() in ("old", "new"), (step, later)
            tree.reset()
            if code == 0:
                break
        else:
            pytest.fail("the recovery never came to an end")


def test_a_signal_does_not_stop_a_recovery_half_way(tree: PlannedTree) -> None:
    codes = []
    for later in range(1, 200):
        kill_after_renames(tree, 2)
        before = tree.content()
        codes.append(in_child(lambda: recover(tree.root), kill_at(later, signal.SIGTERM)))
        assert tree.content() == before or tree.wholly() == "old"
        tree.reset()
        if codes[-1] == 0:
            break
    assert set(codes) == {-signal.SIGTERM, 0}


def test_a_signal_between_two_renames_puts_the_first_file_back(tree: PlannedTree) -> None:
    renames = 0

    def interrupt(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if renames == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    assert in_child(lambda: write(tree.plan), interrupt) == 4
    assert tree.wholly() == "old"


def test_sigkill_while_a_failed_write_is_put_back_is_found_too(tree: PlannedTree) -> None:
    total = count_calls(tree)
    for step in range(total // 3, total, 7):
        for later in range(step + 1, step + 60, 9):

            def interrupt_then_kill(seen: int, _name: str, step=step, later=later) -> None:
                if seen in (step, later):
                    os.kill(os.getpid(), signal.SIGTERM if seen == step else signal.SIGKILL)

            in_child(lambda: write(tree.plan), interrupt_then_kill)
            recover(tree.root)
            assert tree.wholly() in ("old", "new"), (step, later)
            tree.reset()


def test_sigkill_at_random_times_leaves_the_tree_wholly_old_or_new(tmp_path: Path) -> None:
    tree = planned_tree(tmp_path, size=100_000)
    back = tuple(replace(c, before=c.after, after=c.before) for c in tree.plan.changes)
    chance = random.Random(11)
    ends = set()

    def back_and_forth() -> None:
        while True:
            write(tree.plan)
            write(replace(tree.plan, changes=back))

    for _ in range(40):
        child = os.fork()
        if child == 0:
            try:
                back_and_forth()
            finally:
                os._exit(99)
        time.sleep(chance.uniform(0.002, 0.06))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        recover(tree.root)
        ends.add(tree.wholly())
        tree.reset()
    assert ends == {"old", "new"}
