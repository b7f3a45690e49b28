"""The project's own sdist and wheel, and what their metadata says."""

from __future__ import annotations

import email
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from consumers import REPOSITORY, need, run_well


@pytest.mark.network
def test_the_sdist_and_the_wheel_built_from_it_hold_what_they_should(
    index: None, tmp_path: Path
) -> None:
    need("git")
    if importlib.util.find_spec("build") is None:
        pytest.skip("build is not installed")
    run_well([sys.executable, "-m", "build", "-o", str(tmp_path), str(source(tmp_path))], tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    pages = {
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "docs/packaging.md",
        "docs/rebasing.md",
    }
    tools = {"Makefile", "constraints.txt", "action.yml", ".pre-commit-hooks.yaml", ".ci/run"}
    assert {"LICENSE", "tests/conftest.py", *pages, *tools} <= names

    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        fields = email.message_from_bytes(opened.read(metadata))
    assert {name.split("/")[0].split("-")[0] for name in names} == {"codemods", "vllm_codemods"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "codemods/py.typed" in names
    assert fields["Version"] == wheel.name.split("-")[1]
    assert fields["Author"] == "The vllm-codemods contributors"
    assert not {"Author-email", "Maintainer-email", "Project-URL", "Home-page"} & set(fields)


def source(folder: Path) -> Path:
    """A copy of the files that git tracks: what a clean clone holds."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (REPOSITORY / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / "source" / name)
    return folder / "source"
