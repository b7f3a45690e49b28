"""GNU patch, as Arch, dpkg-source, RPM, Nix and a Dockerfile call it."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers import FORMS, PATCH, Case, need, run, run_well

# From Dpkg::Source::Patch, the macros of rpm, the habit of PKGBUILDs, the stdenv of nixpkgs.
COMMANDS = {
    "arch": f"patch -Np1 -i ../{PATCH}",
    "dpkg-source": f"patch -t -F 0 -N -p1 -u < ../{PATCH}",
    "rpm": f"patch -p1 -s --fuzz=0 -f < ../{PATCH}",
    "nix": f"patch -p1 < ../{PATCH}",
}


@pytest.fixture(autouse=True)
def _patch() -> None:
    need("patch")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_patch_takes_each_form_and_refuses_it_the_second_time(
    case: Case, form: str, command: str, tmp_path: Path
) -> None:
    tree = case.copy(tmp_path / "tree")
    (tmp_path / PATCH).write_bytes(case.patches[form])
    run_well(command, tree)
    case.assert_fixed(tree)
    assert run(command, tree).status == 1
    for reject in tree.rglob("*.rej"):
        reject.unlink()
    for kept in tree.rglob("*.orig"):
        kept.unlink()
    case.assert_fixed(tree)


@pytest.mark.parametrize("form", FORMS)
def test_patch_t_alone_takes_the_fix_out_again_as_the_page_warns(
    case: Case, form: str, tmp_path: Path
) -> None:
    tree = case.copy(tmp_path / "tree")
    (tmp_path / PATCH).write_bytes(case.patches[form])
    run_well(f"patch -t -p1 -i ../{PATCH}", tree)
    case.assert_fixed(tree)
    assert run(f"patch -t -p1 -i ../{PATCH}", tree).status == 0
    case.assert_untouched(tree)


@pytest.mark.parametrize("form", FORMS)
def test_patch_works_in_a_folder_of_another_repository(
    small: Case, form: str, tmp_path: Path
) -> None:
    need("git")
    run_well("git init -q", tmp_path)
    tree = small.copy(tmp_path / "build" / "vllm")
    (tmp_path / "build" / PATCH).write_bytes(small.patches[form])
    run_well(f"patch -Np1 -i ../{PATCH}", tree)
    small.assert_fixed(tree)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_crlf_tree_needs_nothing_more(
    crlf: Case, form: str, command: str, tmp_path: Path
) -> None:
    tree = crlf.copy(tmp_path / "tree")
    (tmp_path / PATCH).write_bytes(crlf.patches[form])
    run_well(command, tree)
    crlf.assert_fixed(tree)
