"""An RPM built by rpmbuild, its patch applied by %autosetup with patch and with git am."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers import FORMS, MAILBOXES, PATCH, Case, need, recipe, run, run_well, tarball

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


def top(case: Case, form: str, folder: Path, lines: str) -> list[str]:
    """The build folder, and the command that builds the spec in it."""
    (folder / "SOURCES").mkdir()
    tarball(case, folder / "SOURCES", f"vllm-{case.version}")
    (folder / "SOURCES" / PATCH).write_bytes(case.patch(form))
    spec = SPEC.format(version=case.version, recipe=lines)
    (folder / "vllm.spec").write_text(spec, encoding="utf-8")
    return [
        "rpmbuild",
        "--define",
        f"_topdir {folder}",
        "--define",
        f"_tmppath {folder}",
        "--nodeps",
        "vllm.spec",
    ]


@pytest.mark.parametrize("form", FORMS)
def test_autosetup_lands_each_form(case: Case, form: str, tmp_path: Path) -> None:
    command = top(case, form, tmp_path, recipe("rpm"))
    run_well([*command, "-bp"], tmp_path)
    case.assert_fixed(tmp_path / "BUILD" / f"vllm-{case.version}")


@pytest.mark.parametrize("form", MAILBOXES)
def test_autosetup_with_git_am_lands_each_mailbox(case: Case, form: str, tmp_path: Path) -> None:
    need("git")
    command = top(case, form, tmp_path, with_git_am())
    run_well([*command, "-bp"], tmp_path)
    tree = tmp_path / "BUILD" / f"vllm-{case.version}"
    case.assert_fixed(tree)
    assert "#42165" in run_well("git log -1 --format=%B", tree)


@pytest.mark.parametrize("lines", ["patch", "git_am"])
def test_autosetup_fails_on_a_tree_that_has_the_fix(
    small: Case, lines: str, tmp_path: Path
) -> None:
    need("git")
    for change in small.plan.changes:
        (small.root / change.path).write_bytes(change.after)
    command = top(small, "dep3", tmp_path, recipe("rpm") if lines == "patch" else with_git_am())
    assert run([*command, "-bp"], tmp_path).status != 0


def test_the_package_holds_the_bytes_that_apply_writes(case: Case, tmp_path: Path) -> None:
    need("bsdtar")
    command = top(case, "dep3", tmp_path, recipe("rpm"))
    run([*command, "-bb", "--define", "__os_install_post %{nil}"], tmp_path)
    (package,) = (tmp_path / "RPMS").rglob("*.rpm")
    (tmp_path / "installed").mkdir()
    run_well(["bsdtar", "-xf", str(package), "-C", "installed"], tmp_path)
    for change in case.plan.changes:
        if change.path.startswith("vllm/"):
            installed = tmp_path / "installed/usr/share/vllm" / change.path
            assert installed.read_bytes() == change.after


def with_git_am() -> str:
    return recipe("rpm").replace("%autosetup", "%autosetup -S git_am")
