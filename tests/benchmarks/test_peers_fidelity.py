"""What counts as lost."""

from __future__ import annotations

import pytest
from peers.fidelity import comments_lost, line_ends_lost, total

CODE = b"a = 1  # one\n# two\nb = 2\n"


@pytest.mark.parametrize(
    "after",
    [
        CODE,
        b"# two\nb = 2\na = 1  # one\n",
        CODE + b"# three\n",
        CODE.replace(b"\n", b"\r\n"),
        CODE.replace(b"# one", b"# one  "),
    ],
)
def test_moved_and_added_comments_are_not_lost(after: bytes) -> None:
    assert comments_lost(CODE, after) == 0


@pytest.mark.parametrize(
    ("after", "count"),
    [
        (b"a = 1\n# two\nb = 2\n", 1),
        (b"a = 1\nb = 2\n", 2),
        (CODE.replace(b"# one", b"# won"), 1),
        (b'a = "# one"\n# two\n', 1),
        (b"a = (\n# two\n", 1),
    ],
)
def test_a_comment_that_is_gone_or_another_is_lost(after: bytes, count: int) -> None:
    assert comments_lost(CODE, after) == count


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\n", b"a\nx\nb\n"),
        (b"a\r\nb\r\n", b"a\r\nx\r\nb\r\n"),
        (b"a\nb\r\n", b"a\nx\nb\r\n"),
        (b"a\nb", b"a\nx\nb"),
    ],
)
def test_line_ends_that_were_there_are_kept(before: bytes, after: bytes) -> None:
    assert not line_ends_lost(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"a\r\nx\nb\r\n"),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"a\nb\n", b"a\nx\r\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"a\nb", b"a\nb\n"),
    ],
)
def test_another_line_end_is_a_loss(before: bytes, after: bytes) -> None:
    assert line_ends_lost(before, after)


def test_a_tree_counts_once_for_each_kind_of_loss() -> None:
    kinds = ("comments", "line_ends", "format", "lint", "again", "left_behind")
    none = dict.fromkeys(kinds, 0)
    assert total([none, none]) == {"trees": 2, **none}
    assert total([{**none, "comments": 3, "lint": 7}, none])["comments"] == 1
