"""A name more in an import, sorted and laid out as ruff has it."""

from __future__ import annotations

import libcst as cst
import pytest

from codemods.transforms import names, source
from codemods.transforms.extend_import import (
    extended,
    shortened,
    with_from_import,
    without_from_import,
)
from codemods.transforms.statements import replace
from tests.rewriting import Rewrite, leaves_alone, rewrites


def extend(module: str, name: str, width: int = 88) -> Rewrite:
    """Extend every import of the module at the file's top."""

    def rewrite(data: bytes) -> bytes:
        tree = source.parse(data)
        for node in [*names.walk(tree)]:
            for small in node.body if isinstance(node, cst.SimpleStatementLine) else ():
                if isinstance(small, cst.ImportFrom) and names.import_module(small) == module:
                    tree = replace(tree, {small: extended(small, name, width)})
        return tree.bytes

    return rewrite


def bind(module: str, name: str) -> Rewrite:
    return lambda data: with_from_import(source.parse(data), module, name).bytes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("from m import a", "from m import a, name", id="at the end"),
        pytest.param("from m import z", "from m import name, z", id="at the start"),
        pytest.param("from m import a, z", "from m import a, name, z", id="in between"),
        pytest.param("from m import z  # why", "from m import name, z  # why", id="comment"),
        pytest.param("from m import (a, z)", "from m import (a, name, z)", id="in parentheses"),
        pytest.param("from m import (z)", "from m import (name, z)", id="one in parentheses"),
        pytest.param("from m import (a,)", "from m import (a, name)", id="one with a comma"),
        pytest.param("from m import A, z", "from m import A, name, z", id="behind a class"),
        pytest.param(
            "from m import A_B, C, z", "from m import A_B, C, name, z", id="behind a constant"
        ),
        pytest.param(
            "from m import a, z as b", "from m import a, name, z as b", id="before an alias"
        ),
        pytest.param(
            "from m import a as z, b", "from m import a as z, b, name", id="behind an alias"
        ),
        pytest.param(
            "from m import a, name as b", "from m import a, name as b, name", id="its own alias"
        ),
        pytest.param("from m import a;x = 1", "from m import a, name;x = 1", id="semicolon"),
        pytest.param(
            "from m import a\nfrom m import z",
            "from m import a, name\nfrom m import name, z",
            id="both of two imports",
        ),
        pytest.param(
            "from m import a, \\\n    z", "from m import a, \\\n    name, z", id="continued line"
        ),
    ],
)
def test_the_name_goes_to_its_sorted_place(before: str, after: str) -> None:
    rewrites(extend("m", "name"), f"{before}\n", f"{after}\n")


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("LIMIT", "from m import FLAG, LIMIT, Class, word"),
        ("FLAGS", "from m import FLAG, FLAGS, Class, word"),
        ("Cls", "from m import FLAG, Class, Cls, word"),
        ("Any", "from m import FLAG, Any, Class, word"),
        ("any", "from m import FLAG, Class, any, word"),
        ("_private", "from m import FLAG, Class, _private, word"),
        ("T", "from m import FLAG, Class, T, word"),
        ("word_2", "from m import FLAG, Class, word, word_2"),
    ],
)
def test_constants_come_first_then_classes(name: str, after: str) -> None:
    rewrites(extend("m", name), "from m import FLAG, Class, word\n", f"{after}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """
            from m import (
                a,
                z,
            )
            """,
            """
            from m import (
                a,
                name,
                z,
            )
            """,
            id="in between",
        ),
        pytest.param(
            """
            from m import (
                a,  # first
                # and last
                b,  # last
            )
            """,
            """
            from m import (
                a,  # first
                # and last
                b,  # last
                name,
            )
            """,
            id="at the end, behind comments",
        ),
        pytest.param(
            """
            from m import (
                # sorted by hand
                z,
            )
            """,
            """
            from m import (
                # sorted by hand
                name,
                z,
            )
            """,
            id="at the start, behind a comment",
        ),
        pytest.param(
            """
            from m import (
                a,
                b
            )
            """,
            """
            from m import (
                a,
                b,
                name
            )
            """,
            id="no last comma",
        ),
        pytest.param(
            """
            from m import (  # noqa
                a,
                # the rest is elsewhere
            )
            """,
            """
            from m import (  # noqa
                a,
                # the rest is elsewhere
                name,
            )
            """,
            id="a comment before the bracket",
        ),
    ],
)
def test_an_import_in_lines_gets_a_line(before: str, after: str) -> None:
    rewrites(extend("m", "name"), before, after)


def test_a_line_that_grows_too_long_is_broken() -> None:
    names = [f"long_of_number_{number}" for number in range(4)]
    before = f"from m import {', '.join(names)}\n"
    assert len(before.rstrip()) <= 88
    listed = "".join(f"    {one},\n" for one in [*names, "name"])
    rewrites(extend("m", "name"), before, f"from m import (\n{listed})\n")


def test_a_wider_tree_keeps_the_line() -> None:
    before = f"from m import {'a' * 80}\n"
    rewrites(extend("m", "name", width=120), before, f"from m import {'a' * 80}, name\n")


@pytest.mark.parametrize("length", range(84, 92))
def test_the_widest_line_is_as_wide_as_ruff_allows(length: int) -> None:
    before = f"from m import {'a' * (length - len('from m import , name'))}\n"
    now = extend("m", "name")(before.encode()).decode()
    assert ("(" in now) == (length > 88)
    rewrites(extend("m", "name"), before, now)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("m", "from m import name"),
        ("m", "from m import a, name, z"),
        ("m", "from m import (\n    name,\n)"),
        ("m", "from m import *"),
        ("m", "from m.name import a"),
        ("m", "from .m import a"),
        ("m", "from mm import a"),
        ("m", "import m"),
        ("m", "import m.name"),
        (".m", "from m import a"),
        (".m", "from ..m import a"),
        ("m", "def f():\n    from m import a"),
        ("m", "class A:\n    from m import a"),
        ("m", "x = 'from m import a'"),
        ("m", "# from m import a"),
        ("m", ""),
    ],
)
def test_nothing_else_is_touched(module: str, text: str) -> None:
    leaves_alone(extend(module, "name"), f"{text}\n")


@pytest.mark.parametrize("module", [".m", "..m", "..", "a.b.c", "..a.b"])
def test_dots_are_part_of_the_module(module: str) -> None:
    rewrites(extend(module, "name"), f"from {module} import a\n", f"from {module} import a, name\n")


def test_an_import_behind_if_and_try_is_extended() -> None:
    text = """
        try:
            from m import {0}
        except ImportError:
            a = None
        if a:
            from m import {1}
        """
    rewrites(extend("m", "name"), text.format("a", "z"), text.format("a, name", "name, z"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"from m import a\r\nx = 1", b"from m import a, name\r\nx = 1"),
        (b"\xef\xbb\xbffrom m import a\n", b"\xef\xbb\xbffrom m import a, name\n"),
        (
            b"# coding: latin-1\nfrom m import a # \xe9",
            b"# coding: latin-1\nfrom m import a, name # \xe9",
        ),
        (b"from m import (\r\n    z,\r\n)\r\n", b"from m import (\r\n    name,\r\n    z,\r\n)\r\n"),
        (
            b"if 1:\n\tfrom m import (\n\t\ta,\n\t)\n",
            b"if 1:\n\tfrom m import (\n\t\ta,\n\t\tname,\n\t)\n",
        ),
        (b"x = 1\r\nfrom m import a\ny = 1", b"x = 1\r\nfrom m import a, name\ny = 1"),
    ],
    ids=["CRLF", "BOM", "latin-1", "CRLF in lines", "tabs", "mixed line ends"],
)
def test_bytes_outside_the_import_are_equal(before: bytes, after: bytes) -> None:
    rewrites(extend("m", "name"), before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """
            from typing import Iterator

            import torch
            """,
            """
            from typing import Any, Iterator

            import torch
            """,
            id="import of the module",
        ),
        pytest.param(
            """
            from collections.abc import Callable

            import torch
            """,
            """
            from collections.abc import Callable
            from typing import Any

            import torch
            """,
            id="behind another of the standard library",
        ),
        pytest.param(
            """
            import os
            import sys

            import torch
            """,
            """
            import os
            import sys
            from typing import Any

            import torch
            """,
            id="behind plain imports",
        ),
        pytest.param(
            """
            from weakref import ref

            import torch
            """,
            """
            from typing import Any
            from weakref import ref

            import torch
            """,
            id="before another of the standard library",
        ),
        pytest.param(
            '''
            """What it does."""

            import torch
            ''',
            '''
            """What it does."""

            from typing import Any

            import torch
            ''',
            id="a section of its own",
        ),
        pytest.param(
            """
            from __future__ import annotations

            import torch
            """,
            """
            from __future__ import annotations

            from typing import Any

            import torch
            """,
            id="behind a future import",
        ),
        pytest.param(
            """
            # SPDX-License-Identifier: Apache-2.0
            import torch
            """,
            """
            # SPDX-License-Identifier: Apache-2.0
            from typing import Any

            import torch
            """,
            id="below a licence",
        ),
        pytest.param(
            """
            import torch
            from .models import Model
            """,
            """
            from typing import Any

            import torch
            from .models import Model
            """,
            id="imports that were not in order",
        ),
        pytest.param(
            """
            import torch

            import os
            """,
            """
            import torch

            import os
            from typing import Any
            """,
            id="sections that were not in order",
        ),
    ],
)
def test_a_name_of_the_standard_library_gets_a_line_in_its_section(before: str, after: str) -> None:
    rewrites(bind("typing", "Any"), before, after)


def test_a_name_that_is_imported_already_is_left_alone() -> None:
    leaves_alone(bind("typing", "Any"), "from typing import Any\n\nimport torch\n")
    leaves_alone(bind("typing", "Any"), "import torch\nfrom typing import (\n    Any,\n)\n")


def test_a_module_without_imports_is_refused() -> None:
    with pytest.raises(ValueError, match="imports nothing"):
        bind("typing", "Any")(b"x = 1\n")


def first_import(module: cst.Module) -> cst.ImportFrom:
    line = module.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    assert isinstance(line.body[0], cst.ImportFrom)
    return line.body[0]


@pytest.mark.parametrize(
    "before",
    [
        "from m import a",
        "from m import z",
        "from m import a, z",
        "from m import (a, z)",
        "from m import a, z as b",
        f"from m import {'a' * 70}",
        "from m import (\n    a,\n    z,\n)",
        "from m import (\r\n    a,  # why\r\n    # and\r\n)",
        "from m import (  # noqa\n    a,\n    z\n)",
    ],
)
def test_the_name_goes_as_it_came(before: str) -> None:
    module = source.parse(extend("m", "name")(f"{before}\n".encode()))
    less = shortened(module, first_import(module), "name")
    assert less is not None
    assert module.code_for_node(less) == before


@pytest.mark.parametrize(
    "code",
    [
        "from m import name",
        "from m import a, z",
        "from m import *",
        "from m import name, a",
        "from m import a, name as b",
        "from m import (\n    a,\n    name,  # why\n)",
    ],
)
def test_a_name_that_was_not_put_there_stays(code: str) -> None:
    module = source.parse(f"{code}\n".encode())
    assert shortened(module, first_import(module), "name") is None


@pytest.mark.parametrize(
    "before",
    [
        "import os\nimport sys\n\nimport torch\n",
        "from typing import cast\n\nimport torch\n",
        '"""Doc."""\n\n# The rest.\nimport torch\n',
        "from a import b\n",
    ],
)
def test_an_import_that_was_added_goes(before: str) -> None:
    module = source.parse(bind("typing", "Any")(before.encode()))
    assert without_from_import(module, "typing", "Any").code == before


@pytest.mark.parametrize(
    "code",
    ["import torch\nfrom typing import Any\n", "from typing import Any as A\nimport torch\n"],
)
def test_an_import_that_was_not_put_there_stays(code: str) -> None:
    module = source.parse(code.encode())
    assert without_from_import(module, "typing", "Any").code == code
