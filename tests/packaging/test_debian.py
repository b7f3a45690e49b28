"""A Debian package built by debuild with the page's script and rules; quilt; lintian."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from consumers import (
    FORMS,
    PATCH,
    REPOSITORY,
    Case,
    Ran,
    example,
    need,
    run,
    run_well,
    script,
    tarball,
)

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

  * New upstream release.

 -- Ada Example <ada@example.org>  Wed, 20 May 2026 08:00:00 +0000
"""
RULES = "#!/usr/bin/make -f\n%:\n\tdh $@ --buildsystem=none\n"
OTHER = """\
--- a/vllm/v1/worker/block_table.py
+++ b/vllm/v1/worker/block_table.py
@@ -1 +1,2 @@
+# The packager's own line.
 \"\"\"Which cache block holds which token, for each request, on the host and on the device.\"\"\"
"""


@pytest.fixture(autouse=True)
def _dpkg() -> None:
    need("dpkg-source", "debuild", "dh", "quilt", "tar")


def debianised(tree: Path, version: str, folder: Path, rules: str = RULES) -> Path:
    """The unpacked source with debian/ and no patch, beside its orig tarball."""
    tarball(tree, folder, f"vllm-{version}").rename(folder / f"vllm_{version}.orig.tar.gz")
    run_well(["tar", "-xf", f"vllm_{version}.orig.tar.gz"], folder)
    source = folder / f"vllm-{version}"
    files = {
        "control": CONTROL,
        "changelog": CHANGELOG.format(version=version),
        "copyright": "Apache-2.0\n",
        "rules": rules,
        "install": "vllm usr/share/vllm\n",
        "source/format": "3.0 (quilt)\n",
    }
    for name, text in files.items():
        path = source / "debian" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (source / "debian/rules").chmod(0o755)
    return source


def with_rules(tree: Path, version: str, folder: Path) -> Path:
    return debianised(tree, version, folder, RULES + "\n" + example("debian-rules"))


def with_patch(case: Case, form: str, folder: Path) -> Path:
    """Debianised, with the patch put in by hand."""
    source = debianised(case.root, case.version, folder)
    (source / "debian/patches").mkdir()
    (source / "debian/patches" / PATCH).write_bytes(case.patches[form])
    (source / "debian/patches/series").write_text(PATCH + "\n")
    return source


def debuild(source: Path) -> Ran:
    return run(["debuild", "--no-lintian", "-us", "-uc", "-d"], source)


def series(source: Path) -> list[str]:
    return (source / "debian/patches/series").read_text().splitlines()


def assert_installed(case: Case, source: Path) -> None:
    (package,) = source.parent.glob("*.deb")
    run_well(["dpkg-deb", "-x", package.name, f"installed-{case.name}"], source.parent)
    case.assert_packaged(source.parent / f"installed-{case.name}/usr/share/vllm")


def test_the_recipe_builds_the_fix_again_and_again(small: Case, tmp_path: Path) -> None:
    source = with_rules(small.root, small.version, tmp_path)
    wanted = [f"warm-up-slot-mapping-{small.version}.patch"]
    for _ in range(2):
        assert script("debian", source).status == 0
        assert series(source) == wanted
        ran = debuild(source)
        assert ran.status == 0, ran.output
        assert_installed(small, source)
    ran = script("debian", source)
    assert (ran.status, series(source)) == (0, wanted), ran.output


def test_the_recipe_puts_the_patch_behind_the_packagers_own(small: Case, tmp_path: Path) -> None:
    source = with_rules(small.root, small.version, tmp_path)
    patches = source / "debian/patches"
    patches.mkdir()
    (patches / "other.patch").write_text(OTHER)
    (patches / "series").write_text("warm-up-slot-mapping-0.1.patch\nother.patch\n")
    (patches / "warm-up-slot-mapping-0.1.patch").write_text("stale\n")
    for _ in range(2):
        assert script("debian", source).status == 0
        assert series(source) == ["other.patch", f"warm-up-slot-mapping-{small.version}.patch"]
        assert len(list(patches.glob("*.patch"))) == 2
        small.assert_untouched(source)
        # What dpkg-source leaves in an unpacked package: every patch applied.
        run_well("quilt push -a --fuzz=0", source, QUILT_PATCHES="debian/patches")
    table = (source / "vllm/v1/worker/block_table.py").read_bytes()
    assert table == b"# The packager's own line.\n" + small.changes["vllm/v1/worker/block_table.py"]


def test_a_tree_that_needs_no_fix_loses_the_patch_and_its_build_stops(
    small: Case, tmp_path: Path
) -> None:
    source = with_rules(small.copy_fixed(tmp_path / "fixed"), "9.0", tmp_path)
    (source / "debian/patches").mkdir()
    (source / "debian/patches/warm-up-slot-mapping-9.0.patch").write_bytes(small.patches["dep3"])
    (source / "debian/patches/series").write_text("warm-up-slot-mapping-9.0.patch\n")
    for _ in range(2):
        assert script("debian", source).status == 1
        assert series(source) == []
        assert not list(source.glob("debian/patches/*.patch"))
    assert debuild(source).status != 0
    assert not list(tmp_path.glob("*.deb"))


def test_a_refused_tree_keeps_the_patch_that_is_there(small: Case, tmp_path: Path) -> None:
    tree = small.copy(tmp_path / "broken")
    (tree / "vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    source = with_rules(tree, "9.0", tmp_path)
    name = "warm-up-slot-mapping-9.0.patch"
    (source / "debian/patches").mkdir()
    (source / "debian/patches" / name).write_bytes(small.patches["dep3"])
    (source / "debian/patches/series").write_text(name + "\n")
    for _ in range(2):
        assert script("debian", source).status == 3
        assert series(source) == [name]
        assert (source / "debian/patches" / name).read_bytes() == small.patches["dep3"]


def test_two_recipes_are_a_file_each_for_dpkg_source(small: Case, tmp_path: Path) -> None:
    tree = small.copy(tmp_path / "hybrid")
    shutil.copytree(REPOSITORY / "fixtures/forks-kv/base", tree, dirs_exist_ok=True)
    source = debianised(tree, "1.0", tmp_path)
    patches = source / "debian/patches"
    patches.mkdir()
    made = "vllm-codemods diff . --recipe all --format dep3 -o"
    assert run(f"{made} debian/patches/", source).status == 0
    names = sorted(path.name for path in patches.iterdir())
    assert names == ["0001-slot-mapping.patch", "0002-kv-block-zeroing.patch"]
    (patches / "series").write_text("\n".join(names) + "\n")
    run_well(["dpkg-source", "-b", source.name], tmp_path)
    run_well("quilt pop -aq && quilt push -a --fuzz=0", source, QUILT_PATCHES="debian/patches")
    assert run("vllm-codemods check . --recipe all", source).status == 0
    run_well("quilt pop -aq && rm debian/patches/*", source, QUILT_PATCHES="debian/patches")
    assert run(f"{made} debian/patches/both.patch", source).status == 0
    (patches / "series").write_text("both.patch\n")
    ran = run(["dpkg-source", "-b", source.name], tmp_path)
    assert ran.status != 0
    assert "patches files multiple times" in ran.output


@pytest.mark.network
def test_a_build_of_a_release_that_was_not_asked_about_stops(
    older: Case, newer: Path, tmp_path: Path
) -> None:
    source = with_rules(newer, "0.29.0", tmp_path)
    (source / "debian/patches").mkdir()
    name = "warm-up-slot-mapping-0.26.0.patch"
    (source / "debian/patches" / name).write_bytes(older.patches["dep3"])
    (source / "debian/patches/series").write_text(name + "\n")
    ran = debuild(source)
    assert ran.status != 0
    assert "dpkg-source: info: applying " + name in ran.output
    assert "warm-up-slot-mapping-0.29.0.patch" in ran.output
    assert not list(tmp_path.glob("*.deb"))


@pytest.mark.parametrize("form", FORMS)
def test_dpkg_source_builds_and_unpacks_with_the_fix_in(
    small: Case, form: str, tmp_path: Path
) -> None:
    source = with_patch(small, form, tmp_path)
    run_well(["dpkg-source", "-b", source.name], tmp_path)
    run_well(["dpkg-source", "-x", f"vllm_{small.version}-1.dsc", "unpacked"], tmp_path)
    small.assert_fixed(tmp_path / "unpacked")


def test_lintian_is_silent_on_the_header_of_dep3_alone(small: Case, tmp_path: Path) -> None:
    need("lintian")
    for form in ("dep3", "unified"):
        (tmp_path / form).mkdir()
    assert complaints(small, "dep3", tmp_path / "dep3") == []
    assert complaints(small, "unified", tmp_path / "unified") != []


def complaints(case: Case, form: str, folder: Path) -> list[str]:
    """What lintian, at its most pedantic, says of the patch."""
    source = with_patch(case, form, folder)
    run_well(["dpkg-source", "-b", source.name], folder)
    command = ["lintian", "--display-info", "--pedantic", "--display-experimental", "--allow-root"]
    said = run([*command, f"vllm_{case.version}-1.dsc"], folder).output
    assert "vllm source" in said, said
    return [line for line in said.splitlines() if re.search("patch|dep3", line)]


@pytest.mark.parametrize("form", FORMS)
def test_quilt_pushes_each_form_and_refuses_it_the_second_time(
    case: Case, form: str, tmp_path: Path
) -> None:
    tree = case.copy(tmp_path / "tree")
    (tmp_path / PATCH).write_bytes(case.patches[form])
    run_well(["quilt", "import", f"../{PATCH}"], tree)
    run_well(["quilt", "push", "--fuzz=0"], tree)
    case.assert_fixed(tree)
    assert run(["quilt", "push"], tree).status != 0
    run_well(["quilt", "import", "-P", "again.patch", f"../{PATCH}"], tree)
    assert run(["quilt", "push"], tree).status != 0
    case.assert_fixed(tree)
    run_well(["quilt", "pop", "-a"], tree)
    case.assert_untouched(tree)
