"""What the names of a module mean."""

from __future__ import annotations

import libcst as cst
import pytest

from codemods.transforms import names
from codemods.transforms.names import Imported


def code_of(nodes: object) -> list[str]:
    module = cst.Module([])
    assert hasattr(nodes, "__iter__")
    return [module.code_for_node(node).strip() for node in nodes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"),
        ("a.b.c", "a.b.c"),
        ("(a.b)", "a.b"),
        ("a().b", None),
        ("a[0].b", None),
        ("1", None),
        ("'a'", None),
        ("a + b", None),
    ],
)
def test_only_a_chain_of_names_is_dotted(text: str, expected: str | None) -> None:
    assert names.dotted(cst.parse_expression(text)) == expected


def test_no_expression_is_not_dotted() -> None:
    assert names.dotted(None) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a", [Imported("a", "a", None)]),
        ("import a.b", [Imported("a", "a", None)]),
        ("import a.b as c", [Imported("c", "a.b", None)]),
        ("import a, b as c", [Imported("a", "a", None), Imported("c", "b", None)]),
        ("from a import b", [Imported("b", "a", "b")]),
        ("from a.b import c as d", [Imported("d", "a.b", "c")]),
        ("from .a import b", [Imported("b", ".a", "b")]),
        ("from .. import b", [Imported("b", "..", "b")]),
        ("from a import (\n    b,\n    c,\n)", [Imported("b", "a", "b"), Imported("c", "a", "c")]),
        (
            "if x:\n    import a\nelse:\n    import b",
            [Imported("a", "a", None), Imported("b", "b", None)],
        ),
        ("try:\n    import a\nexcept ImportError:\n    pass", [Imported("a", "a", None)]),
        ("with x:\n    import a; import b", [Imported("a", "a", None), Imported("b", "b", None)]),
        ("from a import *", []),
        ("def f():\n    import a", []),
        ("class A:\n    import a", []),
        ("x = 'import a'", []),
        ("if x: import a", []),
    ],
)
def test_imports_of_a_scope(text: str, expected: list[Imported]) -> None:
    assert list(names.imports(cst.parse_module(text))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [("a", "1")]),
        ("a: int = 1", [("a", "1")]),
        ("a = b = 1", [("a", "1"), ("b", "1")]),
        ("if x:\n    a = 1\nelse:\n    a = 2", [("a", "1"), ("a", "2")]),
        ("a: int", []),
        ("a.b = 1", []),
        ("a[0] = 1", []),
        ("a, b = 1, 2", []),
        ("a += 1", []),
        ("def f():\n    a = 1", []),
        ("class A:\n    a = 1", []),
    ],
)
def test_assignments_of_a_scope(text: str, expected: list[tuple[str, str]]) -> None:
    found = names.assignments(cst.parse_module(text))
    assert [(name, *code_of([value])) for name, value in found] == expected


SCOPES = """\
def f(): pass
if x:
    def f(): pass
    for y in z:
        while y:
            def f(): pass
        else:
            def f(): pass
elif y:
    def f(): pass
try:
    def f(): pass
except A:
    def f(): pass
finally:
    def f(): pass
match x:
    case 1:
        def f(): pass
async def f(): pass
def g():
    def f(): pass
class A:
    def f(self): pass
"""


def test_functions_are_found_in_every_block_but_not_in_definitions() -> None:
    module = cst.parse_module(SCOPES)
    assert len(names.functions(module, "f")) == 10
    assert [one.name.value for one in names.classes(module)] == ["A"]
    inside = next(names.classes(module))
    assert len(names.functions(inside.body, "f")) == 1


def test_a_name_that_is_not_defined_is_not_found() -> None:
    assert names.functions(cst.parse_module(SCOPES), "h") == ()
    assert names.functions(cst.parse_module("f = 1\nf()\n"), "f") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a(b(), c=d())", ["a(b(), c=d())", "b()", "d()"]),
        ("if a():\n    b()\nelse:\n    c()", ["a()", "b()", "c()"]),
        ("with a() as b:\n    c()", ["a()", "c()"]),
        ("x = [a() for y in b()]", ["a()", "b()"]),
        ("a[b()](c)", ["a[b()](c)", "b()"]),
        ("f'{a()}'", ["a()"]),
        ("def f():\n    a()", []),
        ("x = lambda: a()", []),
        ("class A:\n    a()", []),
        ("# a()", []),
        ("'a()'", []),
    ],
)
def test_calls_that_run_when_the_code_runs(text: str, expected: list[str]) -> None:
    assert sorted(code_of(names.calls(cst.parse_module(text)))) == sorted(expected)


def test_nodes_come_in_source_order() -> None:
    module = cst.parse_module("a(b(), c())\nif d():\n    e()\nf()\n")
    assert code_of(names.calls(module)) == ["a(b(), c())", "b()", "c()", "d()", "e()", "f()"]


def test_white_space_and_comments_are_no_children() -> None:
    module = cst.parse_module("# one\n\nx = 1  # two\n")
    assert [type(one) for one in names.children(module)] == [cst.SimpleStatementLine]
    (line,) = names.children(module)
    assert [type(one) for one in names.children(line)] == [cst.Assign]
