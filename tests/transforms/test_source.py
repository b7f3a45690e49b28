"""What is parsed comes back byte for byte, and what cannot be is refused with its reason."""

from __future__ import annotations

import warnings

import pytest

from codemods.transforms.source import (
    MAX_BYTES,
    MAX_LINE,
    UnparsableSource,
    compiles,
    loses_white_space,
    parse,
    survives_parsing,
)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"# only a comment",
        b"x = 1",
        b"x = 1\n",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\r\ny = 2\nz = 3",
        b"\xef\xbb\xbfx = 1\n",
        b"# coding: latin-1\nx = '\xe9'\n",
        b"# -*- coding: utf-8 -*-\nx = '\xc3\xa9'\n",
        b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
        b"if x:\n\ty = 1\n",
        b"if x:\n        y = 1\nelse:\n\ty = 1\n",
        b"x = 1\n\x0c\ny = 2\n",
        b"x = 1 \\\n  + 2\n",
        b"x = 1;\n",
        b"x = 1   \n   \ny = 2\n",
        b"def f():\n    pass\n  # odd\n# end",
        b"x = '''\r\n'''\n",
        b"x = f'{a!r:>{b}}'\n",
        b"type A[T] = list[T]\n",
        b"match x:\n    case [1, *_]: pass\n",
        b"try:\n    pass\nexcept* E:\n    pass\n",
    ],
)
def test_a_module_comes_back_byte_for_byte(data: bytes) -> None:
    assert parse(data).bytes == data
    assert survives_parsing(data)


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n\x0cy = 2\n",
        b"x = 1\n   \n\t\n",
        b"x = = 1\n",
        b"x = '\xe9'\n",
    ],
)
def test_what_the_parser_would_lose_is_known(data: bytes) -> None:
    assert not survives_parsing(data)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = 1\n\x0cy = 2\n", b"x = 1\ny = 2\nz = 3\n"),
        (b"x = 1\ry = 2\r", b"x = 1\ry = 2"),
        (b"x = 1\n\n    \n", b"x = 1\n\ny = 2\n"),
        (b"x = 1\n\n\ny = 2\n", b"x = 1\n\ny = 2\n"),
        (b"x = 1\r\ny = 2\r\n", b"x = 1\r\ny = 2\n"),
        (b"x = 1 \ny = 2", b"x = 1\ny = 2"),
    ],
)
def test_white_space_that_is_lost_is_seen(before: bytes, after: bytes) -> None:
    assert loses_white_space(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"x = 1\n\n    \n", b"x = 1\n\n    \n"),
        (b"x = 1\n", b"x = 1\n\n\ny = 2\n"),
        (b"x = 1", b"x = 1\n\n\ny = 2\n"),
        (b"x = 1\r\ny = 2", b"x = 1\r\ny = 2\r\nz = 3"),
        (b"@jit\n", b'@jit(a=["b"])\n'),
        (b"from a import (b)\n", b"from a import (b, c)\n"),
    ],
)
def test_what_an_edit_adds_or_replaces_is_no_loss(before: bytes, after: bytes) -> None:
    assert not loses_white_space(before, after)


CONFLICT = b"x = 0\n<<<<<<< ours\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"def f(:\n", "syntax error on line 1"),
        (b"x = 1\n\nx = = 1\n", "syntax error on line 3"),
        (b"if x:\ny = 1\n", "syntax error on line 2"),
        (CONFLICT, "unresolved merge conflict on line 2"),
        (CONFLICT.replace(b"\n", b"\r\n"), "unresolved merge conflict on line 2"),
        (b"<<<<<<< ours\nx = 1\n", "unresolved merge conflict on line 1"),
        (b"x = 0\r\n<<<<<<<\r\n", "unresolved merge conflict on line 2"),
        (b"x = 0\n=======\n\n\ny = 1\n", "unresolved merge conflict on line 2"),
        (b"f(\n    1,\n||||||| base\n)\n", "unresolved merge conflict on line 3"),
        (
            b"class A:\n    x = 0\n>>>>>>> theirs\n    y = 0\n",
            "unresolved merge conflict on line 3",
        ),
        (b'"""\nTitle\n=======\n\nText.\n"""\nx = = 1\n', "syntax error on line 7"),
        (b"<<<<<<<< ours\nx = 1\n", "syntax error on line 2"),
        (b"x = 1\n    <<<<<<< ours\n", "syntax error on line 2"),
        (b"f(\n" + CONFLICT.replace(b"<<<<<<<", b"<<<<<<<<"), "syntax error"),
        (b"x = 1\x00\n", ""),
        (b"\x00" * 100, ""),
        (b"\xff\xfex\x00=\x001\x00\n\x00", ""),
        (b"x = '\xe9'\n", "encoding"),
        (b"# coding: nonsense\nx = 1\n", "encoding"),
        (b"\x7fELF\x02\x01\x01\x00", ""),
        (b"x = 'a\0b'\n", "NUL byte"),
        (b"x = 1\n" * (MAX_BYTES // 6 + 1), "larger than 1024 KiB"),
        (b"x = '" + b"a" * MAX_LINE + b"'\n", f"longer than {MAX_LINE} bytes"),
        (b"(" * 5000 + b")" * 5000, "nested too deeply"),
        (b"x = " + b"-" * 9000 + b"1\n", "nested too deeply"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_what_cannot_be_parsed_is_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(UnparsableSource) as caught:
        parse(data)
    message = str(caught.value)
    assert why in message
    assert message
    assert "\n" not in message


def test_the_line_of_a_syntax_error_is_known() -> None:
    with pytest.raises(UnparsableSource) as caught:
        parse(b"x = 1\n\nx = = 1\n")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"x = 1\n", True),
        (b"# coding: latin-1\nx = '\xe9'\n", True),
        (b"\xef\xbb\xbfx = 1\r\n", True),
        (b"", True),
        (b"x = '\\d'\n", True),
        (b"x = = 1\n", False),
        (b"x = '\xe9'\n", False),
        (b"x = 1\x00\n", False),
        (b"# coding: nonsense\n", False),
        (b"(" * 5000 + b")" * 5000, False),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_the_running_python_has_its_say(data: bytes, expected: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiles(data) is expected


def test_lines_that_end_in_a_lone_carriage_return_are_refused() -> None:
    with pytest.raises(UnparsableSource, match="lone carriage return"):
        parse(b"x = 1\ry = 2\r")
