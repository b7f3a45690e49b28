"""A write that is killed before each of its calls leaves a tree that works and can be completed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from codemods.write import write
from tests.forks.profiles import part_of
from tests.write.planned_tree import PlannedTree, count_calls, in_child, kill_at, planned_tree


def killed_at_each_call(tree: PlannedTree) -> list[dict[str, bytes]]:
    """The states that the kills leave, in their order; each is completed by a second apply."""
    states = []
    for step in range(1, count_calls(tree.apply) + 1):
        tree.reset()
        assert in_child(tree.apply, kill_at(step, signal.SIGKILL)).code == -signal.SIGKILL
        assert tree.content().keys() - tree.old.keys() == {
            path.relative_to(tree.root).as_posix() for path in tree.temporaries()
        }
        states.append(tree.files())
        tree.apply()
        assert tree.content() == tree.new, step
    return states


def test_a_kill_leaves_a_prefix_of_the_renames_and_the_next_apply_completes_it(
    memory_tree: PlannedTree,
) -> None:
    states = killed_at_each_call(memory_tree)
    prefixes = [memory_tree.prefixes.index(state) for state in states]
    assert prefixes == sorted(prefixes)
    assert set(prefixes) == {0, 1, 2, 3}


def test_every_state_that_a_kill_leaves_imports(tree: PlannedTree) -> None:
    for state in tree.prefixes:
        for name, content in state.items():
            (tree.root / name).write_bytes(content)
        subprocess.run(
            [sys.executable, "-c", "import vllm.v1.worker.gpu_worker"], cwd=tree.root, check=True
        )


def test_a_kill_in_the_middle_of_putting_back_leaves_a_prefix_too(
    memory_tree: PlannedTree,
) -> None:
    tree = memory_tree
    total = count_calls(tree.apply)
    for row, step in enumerate(range(total // 2, total, 3)):
        for later in part_of(range(step + 1, step + 60, 5), row):

            def interrupt_then_kill(seen: int, _name: str, step=step, later=later) -> None:
                if seen in (step, later):
                    os.kill(os.getpid(), signal.SIGTERM if seen == step else signal.SIGKILL)

            tree.reset()
            in_child(tree.apply, interrupt_then_kill)
            assert tree.files() in tree.prefixes
            tree.apply()
            assert tree.content() == tree.new


def test_a_kill_at_a_random_time_leaves_a_prefix(tmp_path: Path) -> None:
    tree = planned_tree(tmp_path, size=100_000)
    back = [replace(c, before=c.after, after=c.before) for c in reversed(tree.changes)]
    chance = random.Random(11)

    def back_and_forth() -> None:
        while True:
            tree.write()
            write(tree.root, back)

    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                back_and_forth()
            finally:
                os._exit(99)
        time.sleep(chance.uniform(0.002, 0.06))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert tree.files() in tree.prefixes
        tree.apply()
        assert tree.content() == tree.new
        tree.reset()
