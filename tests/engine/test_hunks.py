"""Two versions of a file, and the hunks between them."""

from __future__ import annotations

import pytest

from codemods.engine.hunks import hunks, moved_line, only_adds, split_lines


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


def test_equal_versions_have_no_hunks() -> None:
    assert hunks(b"", b"") == ()
    assert hunks(b"x", b"x") == ()
    assert hunks(numbered(9), numbered(9)) == ()


@pytest.mark.parametrize("odd", [b"\r", b"\x0b", b"\f", b"\x1c", b"\x85", "\u2028".encode()])
def test_only_a_line_feed_ends_a_line(odd: bytes) -> None:
    assert split_lines(b"a" + odd + b"b\nc") == [b"a" + odd + b"b\n", b"c"]


def test_changes_six_lines_apart_share_a_hunk_and_seven_do_not() -> None:
    near = numbered(20).replace(b"line 3\n", b"x\n").replace(b"line 10\n", b"y\n")
    far = numbered(20).replace(b"line 3\n", b"x\n").replace(b"line 11\n", b"y\n")
    assert len(hunks(numbered(20), near)) == 1
    assert len(hunks(numbered(20), far)) == 2


AFTER = numbered(20).replace(b"line 3\n", b"new\nnew\nline 3\n").replace(b"line 9\n", b"")


@pytest.mark.parametrize(
    ("line", "now"), [(1, 1), (2, 2), (3, 5), (8, 10), (9, 10), (10, 11), (20, 21)]
)
def test_a_line_is_found_where_it_moved(line: int, now: int) -> None:
    assert moved_line(line, numbered(20), AFTER) == now


@pytest.mark.parametrize(("line", "now"), [(3, 3), (5, 4), (10, 4), (15, 4), (16, 5), (20, 9)])
def test_a_line_of_a_stretch_that_is_gone_is_the_one_above_it(line: int, now: int) -> None:
    lines = split_lines(numbered(20))
    assert moved_line(line, numbered(20), b"".join(lines[:4] + lines[15:])) == now


@pytest.mark.parametrize("line", [5, 20])
def test_a_line_of_an_end_that_is_gone_is_the_last(line: int) -> None:
    assert moved_line(line, numbered(20), numbered(4)) == 4


@pytest.mark.parametrize("line", [1, 7, 20])
def test_no_line_moves_where_nothing_changes(line: int) -> None:
    assert moved_line(line, numbered(20), numbered(20)) == line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"", b"a\n"),
        (b"a", b"a\nb\n"),
        (b"@jit\nb\n", b"@jit(c)\nb\n"),
        (b"a\nb\n", b"x\na\ny\nb\nz\n"),
        (b"import a\nb\nc\n", b"import a, d\nb\nx\nc\n"),
        (b"a\r\nb", b"a\r\nb\r\nc"),
    ],
)
def test_text_that_is_put_in_takes_nothing_away(before: bytes, after: bytes) -> None:
    assert only_adds(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\n", b""),
        (b"a = 1\n", b"a = 2\n"),
        (b"a\n\x0cb\n", b"a\nb\nc\n"),
        (b"a\n   \n", b"a\n\n\ndef b():\n    pass\n"),
        (b"\xef\xbb\xbfa\n", b"a\nb\n"),
        (b"a\r\nb\r\n", b"a\nb\nc\n"),
        (b"a\r", b"a"),
        (b"a  \nb\n", b"a\nb\nc\n"),
    ],
)
def test_a_byte_that_is_gone_is_seen(before: bytes, after: bytes) -> None:
    assert not only_adds(before, after)
