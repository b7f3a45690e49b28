"""A file of the checkout as the edits see it: read and parsed once, or refused."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.transforms import source
from tests.checkouts import checkout

OUTCOME = Outcome("table", Status.EDIT, Reason.ADDED, "", "vllm/a.py")


def test_a_file_is_read_and_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = Sources(checkout(tmp_path, {"a.py": "x = 1\n"}))
    first = sources.read("a.py")
    (tmp_path / "vllm/a.py").write_text("x = 2\n")
    assert first is not None
    assert sources.read("a.py") is first
    assert first.data == b"x = 1\n"
    module = first.module
    monkeypatch.setattr(source, "parse", None)
    assert first.module is module


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert Sources(checkout(tmp_path, {})).read("none.py") is None


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    sources = Sources(checkout(tmp_path, {}))
    (tmp_path / "vllm/a.py").mkdir()
    for _ in range(2):
        with pytest.raises(Refusal) as caught:
            sources.read("a.py")
        assert (caught.value.reason, caught.value.file) == (Reason.UNREADABLE, "vllm/a.py")


@pytest.mark.parametrize(("data", "line"), [(b"x = 1\ny = = 2\n", 2), (b"x = '\xff'\n", None)])
def test_a_file_that_cannot_be_parsed_is_refused(data: bytes, line: int | None) -> None:
    with pytest.raises(Refusal) as caught:
        _ = SourceFile("vllm/a.py", data).module
    assert caught.value.reason is Reason.UNPARSABLE
    assert (caught.value.file, caught.value.line) == ("vllm/a.py", line)


def test_a_file_that_was_edited_reads_as_it_is_now(tmp_path: Path) -> None:
    sources = Sources(checkout(tmp_path, {"a.py": "x = 1\n"}))
    module = cst.parse_module("x = 2\n")
    sources.put(SourceFile.made("vllm/a.py", b"x = 2\n", module))
    now = sources.read("a.py")
    assert now is not None
    assert (now.data, now.module) == (b"x = 2\n", module)
    assert (tmp_path / "vllm/a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("dotted", "found"),
    [
        ("vllm.home.b", "vllm/home/b.py"),
        (".b", "vllm/home/b.py"),
        (".", "vllm/home/__init__.py"),
        ("..a", "vllm/a.py"),
        ("vllm.home", "vllm/home/__init__.py"),
        ("vllm.none", None),
        ("vllm", None),
        ("other.home.b", None),
        ("home.b", None),
        ("vllmx.home.b", None),
    ],
)
def test_a_module_is_found_by_its_name(dotted: str, found: str | None, tmp_path: Path) -> None:
    names = ("a.py", "home/__init__.py", "home/b.py")
    sources = Sources(checkout(tmp_path, dict.fromkeys(names, "x = 1\n")))
    asking = sources.read("home/b.py")
    assert asking is not None
    module = sources.module(asking, dotted)
    assert (module.name if module else None) == found


@pytest.mark.parametrize(
    ("before", "after", "marker", "line"),
    [
        ("a\n", "a\n\n@x\n@y\ndef f(): ...\n", "def f(", 3),
        ("a\nb\n", "a\nc\nb\n", "", 2),
        ("f()\n", "f()\ng()\nf()\n", "f()", 3),
    ],
)
def test_an_outcome_points_at_the_first_line_of_its_edit(
    before: str, after: str, marker: str, line: int
) -> None:
    edited = Edited(OUTCOME, None, marker)
    assert edited.outcome_on_its_line(before.encode(), after.encode()).line == line
