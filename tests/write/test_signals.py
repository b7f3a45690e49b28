"""A signal that would stop a write half way is put off until the write has a good end."""

from __future__ import annotations

import os
import signal

import pytest

from codemods.write import WriteFailed
from codemods.write.signals import Deferred, Interrupted, deferred
from tests.forks.profiles import FRESH
from tests.write.planned_tree import PlannedTree, count_calls, hook, in_child, kill_at

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
def test_after_a_signal_at_any_call_every_file_is_old_or_every_file_is_new(
    memory_tree: PlannedTree, number: signal.Signals
) -> None:
    """Each call gets one of the signals, in a search each of them."""
    tree = memory_tree
    first, every = (0, 1) if FRESH else (SIGNALS.index(number), len(SIGNALS))
    usual = 130 if number is signal.SIGINT else -number
    seen = set()
    for step in range(1 + first, count_calls(tree.write) + 1, every):
        tree.reset()
        ended = in_child(tree.write, kill_at(step, number))
        content = tree.content()
        if ended.code == 4:
            assert f"interrupted by {number.name}; " in ended.line
            assert content == ended.files(tree)
        seen.add((ended.code, {True: "old", False: "new"}[content == tree.old]))
        assert content in (tree.old, tree.new)
    # While the write is at work it is a failure; before and after, the signal acts as ever.
    assert seen == {(usual, "old"), (4, "old"), (usual, "new")}


def test_a_signal_between_two_renames_puts_the_first_file_back(
    tree: PlannedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames = 0

    def interrupt(_seen: int, name: str) -> None:
        nonlocal renames
        renames += name == "replace"
        if renames == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        hook(patch.setattr, interrupt)
        with pytest.raises(WriteFailed) as failure:
            tree.write()
    assert str(failure.value) == "interrupted by SIGTERM; every file is restored"
    assert tree.content() == tree.old


def test_an_ignored_signal_stays_ignored(tree: PlannedTree) -> None:
    def nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        tree.write()

    assert in_child(nohup, kill_at(40, signal.SIGHUP)).code == 0
    assert tree.content() == tree.new


def test_without_a_signal_the_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with deferred() as signals:
        signals.check()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_first_of_several_signals_is_named() -> None:
    signals = Deferred()
    signals.note(signal.SIGHUP, None)
    signals.note(signal.SIGTERM, None)
    with pytest.raises(Interrupted, match="interrupted by SIGHUP"):
        signals.check()
