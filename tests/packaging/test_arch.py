"""An Arch package built by makepkg."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from consumers import FORMS, PATCH, Case, Ran, need, recipe, run, tarball

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
    folder = Path(tempfile.mkdtemp(prefix="makepkg-"))
    yield folder
    shutil.rmtree(folder)


def makepkg(case: Case, form: str, folder: Path) -> Ran:
    need("makepkg", "fakeroot", "bsdtar", "patch")
    tarball(case, folder, f"vllm-{case.version}")
    (folder / PATCH).write_bytes(case.patch(form))
    text = PKGBUILD.format(version=case.version, recipe=recipe("arch"))
    (folder / "PKGBUILD").write_text(text, encoding="utf-8")
    command = ["makepkg", "--nodeps", "--noconfirm"]
    if os.geteuid() == 0:
        need("setpriv")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return run(command, folder, PKGEXT=".pkg.tar.gz")


@pytest.mark.parametrize("form", FORMS)
def test_makepkg_builds_a_package_that_holds_the_bytes_that_apply_writes(
    case: Case, form: str, anyones: Path
) -> None:
    ran = makepkg(case, form, anyones)
    assert ran.status == 0, ran.output
    assert "fuzz" not in ran.output
    assert "offset" not in ran.output
    case.assert_fixed(anyones / "src" / f"vllm-{case.version}")
    for change in case.plan.changes:
        if change.path.startswith("vllm/"):
            packed = anyones / "pkg/vllm/usr/share/vllm" / change.path
            assert packed.read_bytes() == change.after


def test_makepkg_fails_on_a_tree_that_has_the_fix(small: Case, anyones: Path) -> None:
    for change in small.plan.changes:
        (small.root / change.path).write_bytes(change.after)
    assert makepkg(small, "dep3", anyones).status != 0
    assert not list(anyones.glob("*.pkg.tar*"))
