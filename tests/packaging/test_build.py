"""The project's own sdist and wheel: built, installed apart from the checkout, and used."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from consumers import FIXTURE, REPOSITORY, commit_all, need, run, run_well

pytestmark = pytest.mark.network  # the build backend and LibCST come from the package index


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and, built from it alone, the wheel."""
    need("git")
    if importlib.util.find_spec("build") is None:
        pytest.skip("build is not installed")
    folder = tmp_path_factory.mktemp("built")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    source = folder / "source"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (REPOSITORY / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, source / name)
    run_well([sys.executable, "-m", "build", "--outdir", str(folder), str(source)], folder)
    return folder


@pytest.fixture(scope="module")
def program(built: Path) -> Path:
    """The command, installed from the wheel into an environment of its own."""
    (wheel,) = built.glob("*.whl")
    run_well([sys.executable, "-m", "venv", "environment"], built)
    run_well(["environment/bin/pip", "install", "-q", str(wheel)], built)
    return built / "environment/bin/vllm-codemods"


def test_the_sdist_holds_what_its_page_speaks_of(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/packaging.md"}
    wanted |= {"Makefile", "constraints.txt", "tools/release_table.py", "benchmarks/check_cost.py"}
    assert wanted | {"action.yml", ".pre-commit-hooks.yaml", "tests/test_patch.py"} <= names


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"codemods", "vllm_codemods"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "codemods/py.typed" in names


def test_the_version_is_the_wheels_own(program: Path, built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert run_well([str(program), "--version"], built).split()[-1] == wheel.name.split("-")[1]


def test_without_the_checkout_it_makes_a_patch_that_lands(program: Path, tmp_path: Path) -> None:
    tree = Path(shutil.copytree(FIXTURE, tmp_path / "fork"))
    commit_all(tree)
    run_well(f"{program} diff . --format git -o ../fix.mbox", tree)
    run_well("git am ../fix.mbox", tree)
    before = run_well("git rev-parse HEAD^{tree}", tree)
    assert run(f"{program} apply .", tree).status == 0
    assert run_well("git status --porcelain", tree) == ""
    assert run_well("git rev-parse HEAD^{tree}", tree) == before
