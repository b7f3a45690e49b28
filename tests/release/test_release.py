"""A release by its number."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from codemods.release import fetch
from tests.release.package_index import (
    PACKAGE,
    SDIST,
    UNWANTED,
    WHEEL,
    Index,
    code_of,
    files_under,
    in_top,
    refuses,
    sdist,
    wheel,
)

pytest.importorskip("pypi_simple")
pytest.importorskip("remotezip")


def test_only_the_wanted_files_of_a_wheel_are_kept(index: Index) -> None:
    index.offer((WHEEL, wheel({**PACKAGE, **UNWANTED})))
    tree = fetch("0.21.0")
    info = "vllm-0.21.0.dist-info"
    assert code_of(tree) == PACKAGE
    assert set(files_under(tree)) == {*PACKAGE, f"{info}/METADATA", f"{info}/RECORD"}


def test_a_second_call_asks_nobody(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    index.asked.clear()
    assert fetch("0.21.0") == tree
    assert index.asked == []


@pytest.mark.parametrize("spelling", ["v0.21.0", "0.21", " 0.21.0 "])
def test_other_spellings_of_a_release_find_the_same_folder(index: Index, spelling: str) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    assert fetch(spelling) == fetch("0.21.0")


def test_a_cached_release_is_found_without_importing_the_network_libraries(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    script = (
        "import sys; from codemods.release import fetch; print(fetch('0.21.0'));"
        "assert not {'requests', 'pypi_simple', 'remotezip', 'packaging'} & set(sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True
    )
    assert ran.stdout.strip() == str(tree)


def test_an_sdist_gives_settings_and_tests_and_is_not_kept_whole(index: Index, kept: Path) -> None:
    files = {
        **PACKAGE,
        "pyproject.toml": b"[tool.ruff]\n",
        "tests/conftest.py": b"",
        "tests/v1/worker/test_gpu_model_runner.py": b"def test(): ...\n",
    }
    other = {"csrc/kernel.cu": b"x", "tests/v1/worker/test_utils.py": b"x", "setup.py": b"x"}
    index.offer((SDIST, sdist(in_top({**files, **UNWANTED, **other}))))
    assert files_under(fetch("0.21.0", sdist=True)) == files
    assert not list(kept.rglob("*.tar.gz"))


def test_wheel_and_sdist_of_a_release_are_kept_apart(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)), (SDIST, sdist(in_top(PACKAGE))))
    assert fetch("0.21.0") != fetch("0.21.0", sdist=True)


def test_another_cache_folder_can_be_named(index: Index, tmp_path: Path, kept: Path) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    assert fetch("0.21.0", tmp_path / "here").is_relative_to(tmp_path / "here")
    assert not kept.exists()


@pytest.mark.parametrize(
    "version", ["", "latest", "../0.21.0", "0.21.0/..", "0.21.0+x/../..", "0.21.0\n0.22.0", "0..1"]
)
def test_what_is_no_release_number_never_reaches_the_index(
    index: Index, kept: Path, version: str
) -> None:
    refuses(partial(fetch, version), kept, "is not a release number")
    assert index.asked == []


def test_an_archive_without_the_package_is_refused(index: Index, kept: Path) -> None:
    index.offer((WHEEL, wheel(UNWANTED)), (SDIST, sdist(in_top(UNWANTED))))
    for is_sdist in (False, True):
        refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, "holds no vllm package")


@pytest.mark.parametrize("name", ["pypi_simple", "remotezip"])
def test_a_missing_extra_is_named(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    refuses(partial(fetch, "0.21.0"), kept, name, "pip install 'vllm-codemods[release]'")
