"""Statements put into a module, at its end and in its blocks."""

from __future__ import annotations

import libcst as cst
import pytest

from codemods.transforms import names, source
from codemods.transforms.statements import (
    append,
    insert_after,
    insert_before,
    line_of,
    parse_statements,
    path_to,
    replace,
)
from tests.rewriting import Rewrite, leaves_alone, rewrites

FUNCTION = "def added():\n    if True:\n        return 1\n"


def appending(text: str = FUNCTION) -> Rewrite:
    """Append a function once; what is there already is left alone."""

    def rewrite(data: bytes) -> bytes:
        module = source.parse(data)
        return data if names.functions(module, "added") else append(module, text).bytes

    return rewrite


def inserting(anchor: str, new: str, *, before: bool = False) -> Rewrite:
    """Put a statement beside the one whose code is `anchor`, once."""

    def rewrite(data: bytes) -> bytes:
        module = source.parse(data)
        if new.split()[0] in module.code:
            return data
        statement = found(module, anchor)
        put = insert_before if before else insert_after
        return put(module, statement, parse_statements(module, f"{new}\n")).bytes

    return rewrite


def found(module: cst.Module, code: str) -> cst.BaseStatement:
    return next(
        node
        for node in all_nodes(module)
        if isinstance(node, cst.BaseStatement) and module.code_for_node(node).strip() == code
    )


def all_nodes(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(one for child in names.children(node) for one in all_nodes(child))]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("x = 1\n", f"x = 1\n\n\n{FUNCTION}", id="plain"),
        pytest.param("x = 1", f"x = 1\n\n\n{FUNCTION}".rstrip(), id="no line end at the end"),
        pytest.param(
            "x = 1\n\n# the end\n", f"x = 1\n\n# the end\n\n\n{FUNCTION}", id="last comment"
        ),
        pytest.param(
            "x = 1  # one\n", f"x = 1  # one\n\n\n{FUNCTION}", id="comment on the last line"
        ),
        pytest.param(
            "def f():\n    pass\n    # inside\n",
            f"def f():\n    pass\n    # inside\n\n\n{FUNCTION}",
            id="comment at the end of a block",
        ),
        pytest.param("", FUNCTION, id="empty file"),
        pytest.param("# only\n", f"# only\n\n\n{FUNCTION}", id="only a comment"),
        pytest.param(
            "if x:\n  y = 1\n",
            f"if x:\n  y = 1\n\n\n{FUNCTION.replace('    ', '  ')}",
            id="two spaces",
        ),
    ],
)
def test_a_function_is_put_at_the_end(before: str, after: str) -> None:
    rewrites(appending(), before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = 1\r\n", b"x = 1\r\n\r\n\r\ndef added():\r\n    return 1\r\n"),
        (b"\xef\xbb\xbfx = 1\n", b"\xef\xbb\xbfx = 1\n\n\ndef added():\n    return 1\n"),
        (
            b"# coding: latin-1\nx = 1 # \xe9\n",
            b"# coding: latin-1\nx = 1 # \xe9\n\n\ndef added():\n    return 1\n",
        ),
        (
            b"if 1:\n\tx = 1\n",
            b"if 1:\n\tx = 1\n\n\ndef added():\n\treturn 1\n",
        ),
        (b"x = 1\r\ny = 1\n", b"x = 1\r\ny = 1\n\r\n\r\ndef added():\r\n    return 1\r\n"),
        (b"x = 1\n\x0c\n", b"x = 1\n\x0c\n\n\ndef added():\n    return 1\n"),
    ],
    ids=["CRLF", "BOM", "latin-1", "tabs", "mixed line ends", "form feed"],
)
def test_what_is_appended_is_written_as_the_file_is(before: bytes, after: bytes) -> None:
    rewrites(appending("def added():\n    return 1\n"), before, after)


def test_line_ends_inside_of_strings_are_the_files_too() -> None:
    text = 'def added():\n    """One.\n\n    Two.\n    """\n'
    rewrites(
        appending(text),
        b"x = 1\r\n",
        b'x = 1\r\n\r\n\r\ndef added():\r\n    """One.\r\n\r\n    Two.\r\n    """\r\n',
    )


def test_a_function_that_is_there_is_left_alone() -> None:
    leaves_alone(appending(), f"x = 1\n\n\n{FUNCTION}\n\ny = 2")


METHOD = """\
class A:
    def f(self):
        one()
        # of two
        two()  # two

        # of three
        three()
"""


@pytest.mark.parametrize(
    ("anchor", "old", "new"),
    [
        ("one()", "one()\n", "one()\n        new()\n"),
        ("# of two\ntwo()  # two", "two()  # two\n", "two()  # two\n        new()\n"),
        ("# of three\nthree()", "three()\n", "three()\n        new()\n"),
    ],
)
def test_a_statement_goes_behind_another(anchor: str, old: str, new: str) -> None:
    rewrites(inserting(anchor, "new()"), METHOD, METHOD.replace(old, new))


def test_a_statement_goes_before_another_and_its_comment() -> None:
    rewrites(
        inserting("# of three\nthree()", "new()", before=True),
        METHOD,
        METHOD.replace("two\n\n", "two\n        new()\n\n"),
    )


def test_an_empty_line_stays_empty_in_a_block() -> None:
    rewrites(
        inserting("one()", "new()\n\nnew()"),
        METHOD,
        METHOD.replace("one()\n", "one()\n        new()\n\n        new()\n"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "if a:\n    one()\nelse:\n    two()\n",
        "try:\n    one()\nexcept E:\n    two()\nfinally:\n    three()\n",
        "with a:\n    for b in c:\n        one()\n",
        "async def f():\n    async with a:\n        one()\n    # end\n",
        "match a:\n    case 1:\n        one()\n    case _:\n        pass\n",
    ],
)
def test_a_statement_goes_into_any_block(text: str) -> None:
    line = next(line for line in text.splitlines(keepends=True) if "one()" in line)
    rewrites(
        inserting("one()", "new()"), text, text.replace(line, line + line.replace("one", "new"))
    )


def test_a_block_that_is_indented_oddly_keeps_its_indent() -> None:
    rewrites(
        inserting("one()", "new()"),
        b"if a:\n      one()\nelse:\n\ttwo()\n",
        b"if a:\n      one()\n      new()\nelse:\n\ttwo()\n",
    )


def test_only_the_given_node_is_replaced() -> None:
    module = source.parse(b"f(1, 1)\nf(1, 1)\n")
    first, second = [node for node in all_nodes(module) if isinstance(node, cst.Call)]
    changed = replace(module, {second: second.with_changes(args=[])})
    assert changed.code == "f(1, 1)\nf()\n"
    assert changed.body[0] is module.body[0]
    assert first in all_nodes(changed)


def test_nothing_to_replace_leaves_the_module_as_it_is() -> None:
    module = source.parse(METHOD.encode())
    assert replace(module, {}).code == METHOD


def test_a_node_of_another_module_is_refused() -> None:
    module, other = source.parse(b"f()\n"), source.parse(b"f()\n")
    with pytest.raises(ValueError, match="not in the module"):
        path_to(module, other.body[0])
    with pytest.raises(ValueError, match="not in the module"):
        insert_after(module, other.body[0], [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("here()\n", 1),
        ("# why\nhere()\n", 2),
        ("\n\n# why\n\nhere()\n", 5),
        ("x = '''\n\n'''\nhere()\n", 4),
        ("def f():\n    one()\n\n    # why\n    here()\n", 5),
        ("# -*- coding: utf-8 -*-\n\nx = 1; y = 2\nhere()", 4),
        ("x = (1,\n\n     2)\nif x:\n    pass\nelif y:\n    here()\n", 7),
        ("x = 1\r\n\r\nhere()\r\n", 3),
        ("\ufeffx = 1\nhere()\n", 2),
        ("x = 1\\\n  + 1\nhere()\n", 3),
        ("x = 1\n\x0c\nhere()\n", 3),
    ],
)
def test_a_line_is_counted_from_one_in_the_file(text: str, line: int) -> None:
    module = source.parse(text.encode())
    statement = next(
        node
        for node in all_nodes(module)
        if isinstance(node, cst.SimpleStatementLine) and "here()" in module.code_for_node(node)
    )
    assert line_of(module, statement) == line


def test_a_definition_starts_at_its_first_decorator() -> None:
    module = source.parse(b"x = 1\n\n\n# why\n@a\n# because\n@b\ndef f():\n    pass\n")
    assert line_of(module, module.body[1]) == 5
