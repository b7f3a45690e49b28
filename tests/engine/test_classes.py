"""Which class a name means, through the package's imports, and what it inherits."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.classes import Lineage, find, lineage
from codemods.engine.sources import Sources
from tests.checkouts import checkout

BLOCK_TABLE = "v1/worker/block_table.py"

TABLE = "class Table:\n    def a(self): ...\n"


def made(root: Path, files: dict[str, str], name: str = "Table") -> Lineage | None:
    sources = Sources(checkout(root, files))
    file = sources.read(BLOCK_TABLE)
    assert file is not None
    return lineage(sources, file, name)


def places(found: Lineage | None) -> list[str]:
    assert found is not None
    return [f"{one.file.name.removeprefix('vllm/')}:{one.name}" for one in found.classes]


@pytest.mark.parametrize(
    ("line", "home"),
    [
        pytest.param("from vllm.tables import Table", "tables.py", id="absolute"),
        pytest.param("from .tables import Table", "v1/worker/tables.py", id="relative"),
        pytest.param("from ..tables import Table", "v1/tables.py", id="relative, higher"),
        pytest.param("from vllm.tables import Other as Table", "tables.py", id="alias"),
        pytest.param("from vllm.tables import *", "tables.py", id="star"),
        pytest.param("from vllm import tables\nTable = tables.Table", "tables.py", id="assigned"),
        pytest.param("from . import tables\nTable = tables.Table", "v1/worker/tables.py", id="dot"),
        pytest.param(
            "import vllm.tables as t\nTable = t.Table", "tables.py", id="a module by another name"
        ),
        pytest.param("import vllm.tables\nTable = vllm.tables.Table", "tables.py", id="dotted"),
        pytest.param("from vllm.home import Table", "home/__init__.py", id="package"),
        pytest.param("from vllm.again import Table", "tables.py", id="re-export"),
        pytest.param(
            "try:\n    from vllm.tables import Table\nexcept ImportError:\n    Table = None",
            "tables.py",
            id="behind try",
        ),
        pytest.param("if x:\n    class Table: ...\nelse:\n    pass", BLOCK_TABLE, id="behind if"),
    ],
)
def test_a_class_is_found_where_it_is_defined(line: str, home: str, tmp_path: Path) -> None:
    files = dict.fromkeys(("tables.py", "v1/tables.py", "v1/worker/tables.py"), TABLE)
    files["tables.py"] += "class Other: ...\n"
    files["home/__init__.py"] = TABLE
    files["again.py"] = "from .tables import Table\n"
    found = made(tmp_path, {**files, BLOCK_TABLE: f"{line}\n"})
    assert places(found)[0].startswith(f"{home}:")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "from acme import Table",
        "from vllm.missing import Table",
        "from vllm.missing import *",
        "Table = make()",
        "Table = Table",
        "from vllm.v1.worker.block_table import Table",
        "from .block_table import *",
        "def Table(): ...",
    ],
)
def test_what_leads_to_no_class_of_the_package_is_none(line: str, tmp_path: Path) -> None:
    assert made(tmp_path, {BLOCK_TABLE: f"{line}\n"}) is None


def test_bases_come_each_before_its_own(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        {
            BLOCK_TABLE: (
                "from . import more\nclass Own: ...\nclass Table(more.Rows[int], Own): ...\n"
            ),
            "v1/worker/more.py": "class Deep: ...\nclass Rows(Deep): ...\n",
        },
    )
    assert places(found) == [
        f"{BLOCK_TABLE}:Table",
        "v1/worker/more.py:Rows",
        f"{BLOCK_TABLE}:Own",
        "v1/worker/more.py:Deep",
    ]
    assert found is not None
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("bases", "unknown"),
    [
        ("object", ()),
        ("abc.ABC, Generic[T], metaclass=Meta", ()),
        ("acme.Table", ("acme.Table",)),
        ("Missing[int]", ("Missing",)),
        ("make(1)", ("make(1)",)),
        ("Table", ()),
    ],
)
def test_bases_from_elsewhere_are_reported(
    bases: str, unknown: tuple[str, ...], tmp_path: Path
) -> None:
    found = made(tmp_path, {BLOCK_TABLE: f"class Table({bases}): ...\n"})
    assert found is not None
    assert found.unknown == unknown


def test_the_nearest_method_comes_first_and_of_two_the_last(tmp_path: Path) -> None:
    text = (
        "class Base:\n    def a(self, base): ...\n"
        "class Table(Base):\n    def a(self, first): ...\n    def a(self, second): ...\n"
    )
    found = made(tmp_path, {BLOCK_TABLE: text})
    assert found is not None
    names = [function.params.params[1].name.value for _, function in found.methods("a")]
    assert names == ["second", "first", "base"]
    assert next(found.methods("b"), None) is None


def test_a_name_is_looked_up_in_the_module_that_uses_it(tmp_path: Path) -> None:
    sources = Sources(
        checkout(
            tmp_path,
            {
                BLOCK_TABLE: "from .other import Table\nclass Rows: ...\n",
                "v1/worker/other.py": "from vllm.rows import Rows\nclass Table(Rows): ...\n",
                "rows.py": "class Rows: ...\n",
            },
        )
    )
    file = sources.read(BLOCK_TABLE)
    assert file is not None
    found = lineage(sources, file, "Table")
    assert places(found) == ["v1/worker/other.py:Table", "rows.py:Rows"]
    own = find(sources, file, "Rows")
    assert own is not None
    assert own.file is file
