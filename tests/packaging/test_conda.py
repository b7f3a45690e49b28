"""A conda package built by rattler-build, and the command that conda-build runs."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest
from consumers import FORMS, PATCH, Case, Ran, example, need, run, run_well, tarball, update_patch

RECIPE = """\
context:
  version: "{version}"
package:
  name: vllm
  version: ${{{{ version }}}}
{recipe}
build:
  noarch: generic
  script:
    - mkdir -p "$PREFIX/share/vllm"
    - cp -r vllm "$PREFIX/share/vllm"
"""
BUILD = """\
from rattler_build import Stage0Recipe, VariantConfig
for variant in Stage0Recipe.from_file("recipe.yaml").render(VariantConfig()):
    variant.run_build(output_dir="../out", channels=[])
"""


def rattler_build(tree: Path, version: str, folder: Path) -> Ran:
    """Build in `folder`, the package comes into ../out."""
    found = importlib.util.find_spec("rattler_build")
    if found is None or found.origin is None:
        pytest.skip("rattler-build is not installed")
    tarball(tree, folder, f"vllm-{version}")
    text = RECIPE.format(version=version, recipe=example("conda"))
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    return run([sys.executable, "-c", BUILD], folder, PYTHONPATH=str(Path(found.origin).parents[1]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipe").mkdir()
    return tmp_path / "recipe"


def assert_installed(case: Case, folder: Path) -> None:
    (package,) = folder.parent.glob("out/noarch/*.conda")
    with zipfile.ZipFile(package) as opened:
        (name,) = (name for name in opened.namelist() if name.startswith("pkg-"))
        opened.extract(name, folder.parent)
    run_well(["bsdtar", "-xf", name], folder.parent)
    case.assert_packaged(folder.parent / "share/vllm")


def test_the_recipe_builds_the_fix_again_and_again(small: Case, folder: Path) -> None:
    need("bsdtar")
    for _ in range(2):
        assert update_patch(folder, small.root, small.version).status == 0
        ran = rattler_build(small.root, small.version, folder)
        assert ran.status == 0, ran.output
        assert_installed(small, folder)


@pytest.mark.network
def test_a_build_of_a_release_that_was_not_asked_about_stops(
    older: Case, newer: Path, folder: Path
) -> None:
    (folder / "warm-up-slot-mapping-0.26.0.patch").write_bytes(older.patches["dep3"])
    ran = rattler_build(newer, "0.29.0", folder)
    assert ran.status != 0
    assert "warm-up-slot-mapping-0.29.0.patch" in ran.output
    assert not list(folder.parent.glob("out/noarch/*.conda"))


@pytest.mark.parametrize("form", FORMS)
def test_rattler_build_applies_each_form(case: Case, form: str, folder: Path) -> None:
    need("bsdtar")
    (folder / f"warm-up-slot-mapping-{case.version}.patch").write_bytes(case.patches[form])
    ran = rattler_build(case.root, case.version, folder)
    assert ran.status == 0, ran.output
    assert_installed(case, folder)


def test_rattler_build_takes_a_second_application_for_done_as_the_page_says(
    small: Case, folder: Path, tmp_path: Path
) -> None:
    need("bsdtar")
    fixed = small.copy_fixed(tmp_path / "fixed")
    (folder / f"warm-up-slot-mapping-{small.version}.patch").write_bytes(small.patches["dep3"])
    assert rattler_build(fixed, small.version, folder).status == 0
    assert_installed(small, folder)


@pytest.mark.parametrize("form", FORMS)
def test_conda_builds_own_command_applies_each_form_once(
    case: Case, form: str, tmp_path: Path
) -> None:
    need("git")
    tree = case.copy(tmp_path / "work")
    (tmp_path / PATCH).write_bytes(case.patches[form])
    run_well(f"git apply -p1 ../{PATCH}", tree, GIT_CEILING_DIRECTORIES=str(tmp_path))
    case.assert_fixed(tree)
    again = run(f"git apply -p1 ../{PATCH}", tree, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert again.status != 0
    case.assert_fixed(tree)
