"""mypy: no new error in a changed file, and nothing that the tree's settings name is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codemods.prove import mypy
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.prove.subject import Subject
from tests.prove.test_lint import one_file

pytest.importorskip("mypy")


def proved(found: Subject) -> Proof:
    return mypy.prove(found, Options(timeout=100))


def test_a_right_rewrite_brings_no_new_error(tmp_path: Path) -> None:
    row = proved(one_file(tmp_path, "a: int = ''\n", "a: int = ''\nb: int = 1\n"))
    assert row.status is ProofStatus.PASS, row
    assert (row.figures["errors_before"], row.figures["errors_after"]) == (1, 1)


def test_a_new_error_fails(tmp_path: Path) -> None:
    row = proved(one_file(tmp_path, "a: int = 1\n", "a: int = 1\nb: int = ''\n"))
    assert row.status is ProofStatus.FAIL
    assert row.detail.startswith("1 new: vllm/a.py: Incompatible types")
    assert (tmp_path / "vllm/a.py").read_text() == "a: int = 1\n"


SETTINGS = {
    "mypy.ini": "[mypy]\ndisallow_untyped_defs = True\n",
    ".mypy.ini": "[mypy]\nstrict = True\n",
    "setup.cfg": "[metadata]\nname = x\n[mypy]\nstrict = true\n",
    "pyproject.toml": "[tool.mypy]\nstrict = true\n",
}


@pytest.mark.parametrize("name", [None, *SETTINGS])
def test_the_trees_settings_hold(name: str | None, tmp_path: Path) -> None:
    found = one_file(tmp_path, "", "def f(a):\n    pass\n")
    if name is not None:
        (tmp_path / name).write_text(SETTINGS[name])
    assert proved(found).status is (ProofStatus.PASS if name is None else ProofStatus.FAIL)


def test_settings_of_a_module_hold(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.mypy]\nstrict = true\n[[tool.mypy.overrides]]\nmodule = ["vllm.a", "a"]\n'
        "ignore_errors = true\n"
    )
    found = one_file(tmp_path, "", "def f(a):\n    pass\n")
    assert proved(found).status is ProofStatus.PASS


PROGRAM = "#!/bin/sh\ntouch {marker}\nexit 1\n"
MODULE = "open({marker!r}, 'w')\ndef plugin(version): raise SystemExit(3)\n"
# Several at a time, since each run of mypy takes a second.
NAMED = (
    "plugins = plug.py\npython_executable = ./program\njunit_xml = {root}/ran",
    "plugins = plug\npython_executable = {root}/program\nhtml_report = {root}/ran",
    "install_types = True\nnon_interactive = True\nlinecount_report = {root}/ran",
    "cache_dir = {root}/ran\nmypy_path = {root}\ncustom_typeshed_dir = {root}",
)


@pytest.mark.parametrize("lines", NAMED)
def test_nothing_that_the_settings_name_is_used(lines: str, tmp_path: Path) -> None:
    root, marker = tmp_path / "tree", tmp_path / "tree" / "ran"
    found = one_file(root, "a: int = 1\n", "a: int = 2\n")
    (root / "plug.py").write_text(MODULE.format(marker=str(marker)))
    (root / "program").write_text(PROGRAM.format(marker=marker))
    (root / "program").chmod(0o755)
    (root / "mypy.ini").write_text(f"[mypy]\n{lines.format(root=root)}\n")
    before = sorted(root.rglob("*"))
    assert proved(found).status is ProofStatus.PASS
    assert sorted(root.rglob("*")) == before


def test_modules_of_the_tree_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = one_file(tmp_path, "a: int = 1\n", "a: int = 2\n")
    for name in ("mypy.py", "typing.py", "sitecustomize.py", "ast.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert proved(found).status is ProofStatus.PASS
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mypy.ini", "no section\n"),
        ("pyproject.toml", "[tool.mypy\n"),
        ("mypy.ini", "[mypy]\n\xff"),
    ],
)
def test_settings_that_cannot_be_read_skip_the_row(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    row = proved(one_file(tmp_path, "a = 1\n", "a = 2\n"))
    assert row.status is ProofStatus.SKIPPED
    assert "settings cannot be read" in row.detail
    assert "\n" not in row.detail


def test_a_ref_is_skipped(tmp_path: Path) -> None:
    found = one_file(tmp_path, "a = 1\n", "a = 2\n")
    plan = replace(found.plan, tree=found.plan.tree._replace(ref="main"))
    assert proved(Subject(plan, found.checkout)).status is ProofStatus.SKIPPED
