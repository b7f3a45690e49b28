"""A Debian source and binary package with the patch in its quilt series; lintian on its header."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers import FORMS, PATCH, Case, need, run, run_well, tarball

CONTROL = """\
Source: vllm
Section: python
Priority: optional
Maintainer: Ada Example <ada@example.org>
Build-Depends: debhelper-compat (= 13)
Standards-Version: 4.6.2
Rules-Requires-Root: no

Package: python3-vllm
Architecture: all
Depends: ${misc:Depends}
Description: inference server
 A small package that holds the files that the patch changes.
"""
CHANGELOG = """\
vllm ({version}-1) unstable; urgency=medium

  * Warm the slot-mapping kernel up.

 -- Ada Example <ada@example.org>  Wed, 20 May 2026 08:00:00 +0000
"""


@pytest.fixture(autouse=True)
def _dpkg() -> None:
    need("dpkg-source", "dpkg-buildpackage", "dh", "tar")


def debianised(case: Case, form: str, folder: Path) -> Path:
    """The unpacked source with debian/, beside its orig tarball."""
    archive = tarball(case, folder, f"vllm-{case.version}")
    archive.rename(folder / f"vllm_{case.version}.orig.tar.gz")
    tree = case.copy(folder / f"vllm-{case.version}")
    files = {
        "control": CONTROL,
        "changelog": CHANGELOG.format(version=case.version),
        "copyright": "Apache-2.0\n",
        "rules": "#!/usr/bin/make -f\n%:\n\tdh $@ --buildsystem=none\n",
        "install": "vllm usr/share/vllm\n",
        "source/format": "3.0 (quilt)\n",
        "patches/series": PATCH + "\n",
    }
    for name, text in files.items():
        path = tree / "debian" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tree / "debian/rules").chmod(0o755)
    (tree / "debian/patches" / PATCH).write_bytes(case.patch(form))
    return tree


@pytest.mark.parametrize("form", FORMS)
def test_dpkg_source_builds_and_unpacks_with_the_fix_in(
    case: Case, form: str, tmp_path: Path
) -> None:
    tree = debianised(case, form, tmp_path)
    run_well(["dpkg-source", "-b", tree.name], tmp_path)
    run_well(["dpkg-source", "-x", f"vllm_{case.version}-1.dsc", "unpacked"], tmp_path)
    case.assert_fixed(tmp_path / "unpacked")


@pytest.mark.parametrize("form", FORMS)
def test_dpkg_source_refuses_a_tree_that_has_the_fix_upstream(
    small: Case, form: str, tmp_path: Path
) -> None:
    fixed = tmp_path / "fixed"
    small.copy(fixed)
    for change in small.plan.changes:
        (fixed / change.path).write_bytes(change.after)
    already = Case("fixed", fixed, small.plan)
    tree = debianised(already, form, tmp_path)
    ran = run(["dpkg-source", "-b", tree.name], tmp_path)
    assert ran.status != 0
    assert not list(tmp_path.glob("*.dsc"))


def test_the_binary_package_holds_the_bytes_that_apply_writes(case: Case, tmp_path: Path) -> None:
    tree = debianised(case, "dep3", tmp_path)
    run_well(["dpkg-buildpackage", "-us", "-uc", "-d"], tree)
    (package,) = tmp_path.glob("*.deb")
    run_well(["dpkg-deb", "-x", package.name, "installed"], tmp_path)
    for change in case.plan.changes:
        installed = tmp_path / "installed/usr/share/vllm" / change.path
        if installed.exists() or change.path.startswith("vllm/"):
            assert installed.read_bytes() == change.after


def test_lintian_is_silent_on_the_patch_header(case: Case, tmp_path: Path) -> None:
    need("lintian")
    assert complaints(case, "dep3", tmp_path) == []


def test_lintian_does_complain_of_a_patch_without_a_header(small: Case, tmp_path: Path) -> None:
    need("lintian")
    assert complaints(small, "unified", tmp_path) != []


def complaints(case: Case, form: str, folder: Path) -> list[str]:
    """What lintian, at its most pedantic, says of the patch."""
    tree = debianised(case, form, folder)
    run_well(["dpkg-source", "-b", tree.name], folder)
    command = ["lintian", "--display-info", "--pedantic", "--display-experimental", "--allow-root"]
    said = run([*command, f"vllm_{case.version}-1.dsc"], folder).output
    assert "vllm source" in said, said
    return [line for line in said.splitlines() if "patch" in line or "dep3" in line]


@pytest.mark.parametrize("form", FORMS)
def test_quilt_pushes_each_form_and_refuses_it_the_second_time(
    case: Case, form: str, tmp_path: Path
) -> None:
    need("quilt")
    tree = case.copy(tmp_path / "tree")
    (tmp_path / PATCH).write_bytes(case.patch(form))
    run_well(["quilt", "import", f"../{PATCH}"], tree)
    run_well(["quilt", "push", "--fuzz=0"], tree)
    case.assert_fixed(tree)
    assert run(["quilt", "push"], tree).status != 0
    run_well(["quilt", "import", "-P", "again.patch", f"../{PATCH}"], tree)
    assert run(["quilt", "push"], tree).status != 0
    case.assert_fixed(tree)
    run_well(["quilt", "pop", "-a"], tree)
    case.assert_untouched(tree)
