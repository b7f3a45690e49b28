"""An Arch package built by makepkg."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from consumers import FORMS, Case, Ran, example, need, run, tarball, update_patch

PKGBUILD = """\
pkgname=vllm
pkgver={version}
pkgrel=1
pkgdesc="inference server"
arch=(any)
url=https://example.org
license=(Apache)
sha256sums=(SKIP SKIP)
{recipe}
package() {{
  install -d "$pkgdir/usr/share/vllm"
  cp -r "vllm-$pkgver/vllm" "$pkgdir/usr/share/vllm"
}}
"""
NOBODY = 65534


@pytest.fixture
def anyones() -> Iterator[Path]:
    """A folder that an ordinary user may write: makepkg will not run as root."""
    need("makepkg", "pacman", "fakeroot", "bsdtar", "patch", "setpriv")
    folder = Path(tempfile.mkdtemp(prefix="makepkg-"))
    (folder / "build").mkdir()
    yield folder / "build"
    shutil.rmtree(folder)


def makepkg(tree: Path, version: str, folder: Path, *options: str) -> Ran:
    tarball(tree, folder, f"vllm-{version}")
    text = PKGBUILD.format(version=version, recipe=example("arch"))
    (folder / "PKGBUILD").write_text(text, encoding="utf-8")
    command = ["makepkg", "--nodeps", "--noconfirm", "--force", *options]
    if os.geteuid() == 0:
        for path in (folder.parent, folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return run(command, folder, PKGEXT=".pkg.tar.gz")


def test_the_recipe_builds_the_fix_again_and_again(small: Case, anyones: Path) -> None:
    for _ in range(2):
        assert update_patch(anyones, small.root, small.version).status == 0
        ran = makepkg(small.root, small.version, anyones)
        assert ran.status == 0, ran.output
        (package,) = anyones.glob("*.pkg.tar.gz")
        shutil.rmtree(anyones / "out", ignore_errors=True)
        (anyones / "out").mkdir()
        assert run(["tar", "-xf", package.name, "-C", "out"], anyones).status == 0
        small.assert_packaged(anyones / "out/usr/share/vllm")


@pytest.mark.network
def test_a_build_of_a_release_that_was_not_asked_about_stops(
    older: Case, newer: Path, anyones: Path
) -> None:
    (anyones / "warm-up-slot-mapping-0.26.0.patch").write_bytes(older.patches["dep3"])
    ran = makepkg(newer, "0.29.0", anyones)
    assert ran.status != 0
    assert "warm-up-slot-mapping-0.29.0.patch was not found" in ran.output
    assert not list(anyones.glob("*.pkg.tar*"))


@pytest.mark.parametrize("form", FORMS)
def test_prepare_applies_each_form(case: Case, form: str, anyones: Path) -> None:
    (anyones / f"warm-up-slot-mapping-{case.version}.patch").write_bytes(case.patches[form])
    ran = makepkg(case.root, case.version, anyones, "--nobuild")
    assert ran.status == 0, ran.output
    assert "fuzz" not in ran.output
    assert "offset" not in ran.output
    case.assert_fixed(anyones / "src" / f"vllm-{case.version}")


def test_prepare_fails_on_a_tree_that_has_the_fix(
    small: Case, anyones: Path, tmp_path: Path
) -> None:
    fixed = small.copy_fixed(tmp_path / "fixed")
    (anyones / f"warm-up-slot-mapping-{small.version}.patch").write_bytes(small.patches["dep3"])
    assert makepkg(fixed, small.version, anyones).status != 0
    assert not list(anyones.glob("*.pkg.tar*"))
