"""An RPM built by rpmbuild, its patch applied by %autosetup with patch and with git am."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers import (
    COMPLAINT,
    FORMS,
    MAILBOXES,
    Case,
    Ran,
    example,
    need,
    run,
    run_well,
    tarball,
    update_patch,
)

SPEC = """\
Name: vllm
Version: {version}
Release: 1
Summary: inference server
License: Apache-2.0
BuildArch: noarch
Source0: vllm-%{{version}}.tar.gz
{recipe}
%description
A small package that holds the files that the patch changes.

%install
mkdir -p %{{buildroot}}/usr/share/vllm
cp -r vllm %{{buildroot}}/usr/share/vllm

%files
/usr/share/vllm
"""


@pytest.fixture(autouse=True)
def _rpm() -> None:
    need("rpmbuild", "tar", "patch")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "top/SOURCES").mkdir(parents=True)
    return tmp_path / "top"


def rpmbuild(top: Path, stage: str, tree: Path, version: str, lines: str) -> Ran:
    tarball(tree, top / "SOURCES", f"vllm-{version}")
    (top / "vllm.spec").write_text(SPEC.format(version=version, recipe=lines), encoding="utf-8")
    defined = (f"_topdir {top}", f"_tmppath {top}", "__os_install_post %{nil}")
    options = [part for each in defined for part in ("--define", each)]
    return run(["rpmbuild", *options, "--nodeps", stage, "vllm.spec"], top)


def put_patch(top: Path, case: Case, form: str) -> None:
    name = f"warm-up-slot-mapping-{case.version}.patch"
    (top / "SOURCES" / name).write_bytes(case.patches[form])


def test_the_recipe_builds_the_fix_again_and_again(small: Case, top: Path) -> None:
    need("bsdtar")
    for _ in range(2):
        assert update_patch(top / "SOURCES", small.root, small.version).status == 0
        ran = rpmbuild(top, "-bb", small.root, small.version, example("rpm"))
        assert ran.status == 0, ran.output
        (package,) = (top / "RPMS").rglob("*.rpm")
        (top / "installed").mkdir(exist_ok=True)
        run_well(["bsdtar", "-xf", str(package), "-C", "installed"], top)
        small.assert_packaged(top / "installed/usr/share/vllm")


@pytest.mark.network
def test_a_build_of_a_release_that_was_not_asked_about_stops(
    older: Case, newer: Path, top: Path
) -> None:
    put_patch(top, older, "dep3")
    ran = rpmbuild(top, "-bp", newer, "0.29.0", example("rpm"))
    assert ran.status != 0
    assert "warm-up-slot-mapping-0.29.0.patch" in ran.output
    assert update_patch(top / "SOURCES", newer, "0.29.0").status == 1
    assert rpmbuild(top, "-bp", newer, "0.29.0", example("rpm")).status != 0


@pytest.mark.parametrize("form", FORMS)
def test_autosetup_applies_each_form(case: Case, form: str, top: Path) -> None:
    put_patch(top, case, form)
    ran = rpmbuild(top, "-bp", case.root, case.version, example("rpm"))
    assert ran.status == 0, ran.output
    assert not COMPLAINT.search(ran.output), ran.output
    case.assert_fixed(top / "BUILD" / f"vllm-{case.version}")


@pytest.mark.parametrize("form", MAILBOXES)
def test_autosetup_with_git_am_applies_each_mailbox(small: Case, form: str, top: Path) -> None:
    need("git")
    put_patch(top, small, form)
    ran = rpmbuild(top, "-bp", small.root, small.version, with_git_am())
    assert ran.status == 0, ran.output
    tree = top / "BUILD" / f"vllm-{small.version}"
    small.assert_fixed(tree)
    assert "#42165" in run_well("git log -1 --format=%B", tree)


@pytest.mark.parametrize("lines", ["patch", "git_am"])
def test_autosetup_fails_on_a_tree_that_has_the_fix(
    small: Case, lines: str, top: Path, tmp_path: Path
) -> None:
    need("git")
    put_patch(top, small, "dep3")
    fixed = small.copy_fixed(tmp_path / "fixed")
    spec = example("rpm") if lines == "patch" else with_git_am()
    assert rpmbuild(top, "-bp", fixed, small.version, spec).status != 0


def with_git_am() -> str:
    return example("rpm").replace("%autosetup", "%autosetup -S git_am")
