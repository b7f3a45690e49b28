"""The journal of an interrupted write: what ends it, and what it can never be made to do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planned_tree import (
    PATHS,
    PlannedTree,
    kill_after_renames,
    planned_tree,
    tree_in_memory,
)

from codemods.write import WriteFailed, describe, pending, recover, write

NAME = ".vllm-codemods-journal"
TOKEN = "0123456789abcdef"


@pytest.fixture
def tree() -> Iterator[PlannedTree]:
    with tree_in_memory() as made:
        yield made


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# Whoever only looks


def test_no_journal_is_nothing_to_do(tree: PlannedTree) -> None:
    assert pending(tree.root) is None
    assert recover(tree.root) == ""
    assert tree.wholly() == "old"


@pytest.mark.parametrize("root", ["gone", PATHS[0]])
def test_a_root_that_is_no_folder_has_no_journal(tree: PlannedTree, root: str) -> None:
    assert pending(tree.root / root) is None
    assert recover(tree.root / root) == ""


def test_the_line_of_an_interrupted_write_names_each_file_and_its_state(tree: PlannedTree) -> None:
    kill_after_renames(tree, 1)
    left = tree.content()
    journal = pending(tree.root)
    assert journal
    line = describe(journal)
    assert line.isprintable()
    assert f"{PATHS[0]} is rewritten, {PATHS[1]} is as it was" in line
    assert tree.content() == left


# What ends it


@pytest.mark.parametrize(
    ("renames", "end", "said"),
    [(0, "old", "undone"), (1, "old", "undone"), (3, "new", "completed")],
)
def test_the_next_run_undoes_what_was_half_done_and_completes_what_was_done(
    tree: PlannedTree, renames: int, end: str, said: str
) -> None:
    kill_after_renames(tree, renames)
    assert f"found and {said}" in recover(tree.root)
    assert tree.wholly() == end


def test_recovery_of_a_tree_that_was_moved_ends_it_too(tree: PlannedTree, tmp_path: Path) -> None:
    kill_after_renames(tree, 2)
    moved = tmp_path / "moved"
    shutil.copytree(tree.root, moved)
    assert "undone" in recover(moved)
    assert PlannedTree(moved, tree.plan).wholly() == "old"


THEIRS = b"# their edit\n"


@pytest.mark.parametrize(
    ("renames", "edited", "end"),
    [
        (0, 0, "old"),  # nothing was replaced: the edit is of the old file
        (1, 0, "new"),  # the edited file was replaced: only forward keeps the edit
        (1, 1, "old"),  # the edited file was not: only back does
        (2, 1, "new"),
        (3, 2, "new"),
    ],
)
def test_a_file_edited_since_stays_and_the_others_take_its_side(
    tree: PlannedTree, renames: int, edited: int, end: str
) -> None:
    kill_after_renames(tree, renames)
    tree.path(edited).unlink()
    tree.path(edited).write_bytes(THEIRS)
    assert "has changed since" in recover(tree.root)
    others = tree.old if end == "old" else tree.new
    assert tree.content() == {**others, PATHS[edited]: THEIRS}


def test_files_edited_on_both_sides_are_left_alone_and_named(tree: PlannedTree) -> None:
    kill_after_renames(tree, 1)
    for index in (0, 1):
        tree.path(index).write_bytes(THEIRS)
    left = tree.content()
    with pytest.raises(WriteFailed, match="neither undone nor completed") as failure:
        recover(tree.root)
    assert f"{PATHS[0]} was rewritten, and has changed since" in str(failure.value)
    assert f"{PATHS[1]} was not rewritten, and has changed since" in str(failure.value)
    assert tree.content() == left


def test_a_saved_original_that_was_tampered_with_is_not_put_back(tree: PlannedTree) -> None:
    kill_after_renames(tree, 1)
    for old in tree.root.rglob("*.old"):
        old.unlink()
        old.write_bytes(b"import os")
    recover(tree.root)
    assert tree.wholly() == "new"


def test_a_prepared_file_that_was_tampered_with_is_not_put_in(tree: PlannedTree) -> None:
    kill_after_renames(tree, 1)
    tree.path(0).write_bytes(THEIRS)  # only forward would keep this
    for new in tree.root.rglob("*.new"):
        new.write_bytes(b"import os")
    left = tree.content()
    with pytest.raises(WriteFailed, match="neither undone nor completed"):
        recover(tree.root)
    assert tree.content() == left


def test_reverting_the_files_by_hand_is_enough(tree: PlannedTree) -> None:
    kill_after_renames(tree, 2)
    for name, content in tree.old.items():
        (tree.root / name).write_bytes(content)
    recover(tree.root)
    assert tree.wholly() == "old"


def test_files_and_folders_deleted_since_do_not_hinder(tree: PlannedTree) -> None:
    kill_after_renames(tree, 3)
    shutil.rmtree(tree.root / "vllm")
    recover(tree.root)
    assert tree.content() == {}


# What no journal can do: it may have come with a downloaded tree


def journal_text(**changes: Any) -> bytes:
    file = {"path": PATHS[0], "before": "0" * 64, "after": "1" * 64}
    file.update({key: value for key, value in changes.items() if key in file})
    data = {"vllm-codemods-journal": 1, "token": TOKEN, "files": [file]}
    data.update({key: value for key, value in changes.items() if key in data})
    return json.dumps(data).encode() + b"\n"


HOSTILE = {
    "not JSON": b"\xff\xfe\n",
    "NUL": b"\0" * 100 + b"\n",
    "too deep": b"[" * 200_000 + b"\n",
    "too long": b" " * (1 << 20) + b"\n",
    "a list": b"[]\n",
    "a number": b"7\n",
    "other schema": b'{"vllm-codemods-journal": 2}\n',
    "no file": journal_text(files=[]),
    "files no list": journal_text(files=3),
    "files of names": journal_text(files=["vllm"]),
    "twice the same": journal_text(files=[json.loads(journal_text())["files"][0]] * 2),
    "above the root": journal_text(path="../outside.py"),
    "above in the middle": journal_text(path="vllm/../../outside.py"),
    "absolute": journal_text(path="/etc/hostname"),
    "empty path": journal_text(path=""),
    "the root": journal_text(path="."),
    "not normal": journal_text(path="vllm//v1/./worker"),
    "NUL in path": journal_text(path="vllm\0.py"),
    "lone surrogate": journal_text(path="\ud800.py"),
    "path no text": journal_text(path=["vllm"]),
    "path too long": journal_text(path="a/" * 3000 + "b"),
    "itself": journal_text(path=NAME),
    "one of ours": journal_text(path=f"vllm/.x.vllm-codemods-{TOKEN}.old"),
    "token a path": journal_text(token="/../../../../x"),
    "token too short": journal_text(token="0123"),
    "token no text": journal_text(token=7),
    "hash too short": journal_text(before="0"),
    "hash with line": journal_text(after="1" * 63 + "\n"),
    "no change": journal_text(before="1" * 64),
    "through a link": journal_text(path="link/outside.py"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_journal_that_we_never_write_is_refused_and_nothing_is_touched(
    tmp_path: Path, content: bytes
) -> None:
    tree = planned_tree(tmp_path / "tree")
    outside = tmp_path / "outside.py"
    outside.write_bytes(b"outside")
    (tree.root / "link").symlink_to(tmp_path)
    (tree.root / NAME).write_bytes(content)
    left = tree.content()
    for action in (pending, recover, lambda _root: write(tree.plan)):
        with pytest.raises(WriteFailed) as failure:
            action(tree.root)
        assert str(failure.value).isprintable()
        assert NAME in str(failure.value)
    assert tree.content() == left
    assert outside.read_bytes() == b"outside"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside.py", "tree"]


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        Path.mkdir,
        lambda path: path.symlink_to(path.parent / PATHS[0]),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("gone"),
    ],
    ids=["fifo", "folder", "link", "link-to-device", "link-to-nothing"],
)
def test_a_journal_that_is_no_file_is_refused(
    tree: PlannedTree, make: Callable[[Path], None]
) -> None:
    make(tree.root / NAME)
    left = tree.content()
    for action in (pending, recover, lambda _root: write(tree.plan)):
        with pytest.raises(WriteFailed, match="not a regular file"):
            action(tree.root)
    assert tree.content() == left


def planted(tree: PlannedTree, target: str, before: bytes, after: bytes) -> Path:
    """A well-formed journal by which `target` looks replaced; returns its saved original."""
    text = journal_text(path=target, before=sha256(before), after=sha256(after))
    (tree.root / NAME).write_bytes(text)
    path = tree.root / target
    return path.with_name(f".{path.name}.vllm-codemods-{TOKEN}.old")


def test_a_saved_original_that_is_a_link_out_of_the_tree_is_not_followed(
    tree: PlannedTree, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    current = tree.path(0).read_bytes()
    planted(tree, PATHS[0], b"secret", current).symlink_to(secret)
    recover(tree.root)
    assert tree.path(0).read_bytes() == current
    assert not tree.path(0).is_symlink()
    assert secret.read_bytes() == b"secret"


def test_a_target_that_is_a_link_out_of_the_tree_is_not_followed(
    tree: PlannedTree, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.py"
    outside.write_bytes(b"theirs")
    tree.path(0).unlink()
    tree.path(0).symlink_to(outside)
    planted(tree, PATHS[0], b"evil", b"theirs").write_bytes(b"evil")
    recover(tree.root)
    assert outside.read_bytes() == b"theirs"
    assert tree.path(0).is_symlink()


def test_a_fifo_or_a_huge_file_as_target_neither_blocks_nor_is_read(tree: PlannedTree) -> None:
    tree.path(0).unlink()
    os.mkfifo(tree.path(0))
    planted(tree, PATHS[0], b"a", b"b")
    recover(tree.root)
    os.truncate(tree.path(1), 1 << 40)
    planted(tree, PATHS[1], b"a", b"b")
    recover(tree.root)
    assert tree.path(1).stat().st_size == 1 << 40
    tree.path(0).unlink()
    os.truncate(tree.path(1), 0)


def test_a_folder_where_a_temporary_should_be_is_one_line(tree: PlannedTree) -> None:
    planted(tree, PATHS[0], b"a", tree.path(0).read_bytes()).mkdir()
    with pytest.raises(WriteFailed, match="cannot end an interrupted apply"):
        recover(tree.root)
    assert tree.files() == tree.old
