"""conda and Nix by the commands they run, Nix by nix-build too, and the lines of a Dockerfile."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from consumers import COMPLAINT, FORMS, PATCH, Case, Ran, need, recipe, run, run_well, with_command

from codemods.write import write
from codemods.write.record import with_record


@pytest.mark.parametrize("form", FORMS)
def test_conda_lands_each_form_once(case: Case, form: str, tmp_path: Path) -> None:
    need("git")
    assert f"- {PATCH}" in recipe("conda")
    tree = case.copy(tmp_path / "work")
    (tmp_path / PATCH).write_bytes(case.patch(form))
    run_well(f"git apply -p1 ../{PATCH}", tree, GIT_CEILING_DIRECTORIES=str(tmp_path))
    case.assert_fixed(tree)
    again = run(f"git apply -p1 ../{PATCH}", tree, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert again.status != 0
    case.assert_fixed(tree)


DERIVATION = """\
derivation {{
  name = "vllm-source";
  system = builtins.currentSystem;
  builder = "/bin/sh";
  src = {tree};
  patch = {patch};
  args = [ "-ec" ''
    export PATH=/usr/bin:/bin
    cp -r $src $out && chmod -R u+w $out && cd $out
    patch -p1 < $patch
  '' ];
}}
"""


def nix_build(case: Case, form: str, folder: Path) -> Ran:
    need("nix-build", "patch")
    (folder / PATCH).write_bytes(case.patch(form))
    text = DERIVATION.format(tree=case.root, patch=folder / PATCH)
    (folder / "default.nix").write_text(text, encoding="utf-8")
    store = {
        "NIX_STORE_DIR": str(folder / "nix/store"),
        "NIX_STATE_DIR": str(folder / "nix/state"),
        "NIX_LOG_DIR": str(folder / "nix/log"),
        "NIX_CONF_DIR": str(folder / "nix/conf"),
        "NIX_CONFIG": "sandbox = false\nbuild-users-group =\nsubstituters =",
        "NIX_IGNORE_SYMLINK_STORE": "1",
    }
    return run(["nix-build", "default.nix", "--no-out-link"], folder, **store)


@pytest.mark.parametrize("form", FORMS)
def test_nix_build_lands_each_form(case: Case, form: str, tmp_path: Path) -> None:
    ran = nix_build(case, form, tmp_path)
    assert ran.status == 0, ran.output
    assert not COMPLAINT.search(ran.output), ran.output
    case.assert_fixed(Path(ran.output.strip().splitlines()[-1]))


def test_nix_build_fails_on_a_tree_that_has_the_fix(small: Case, tmp_path: Path) -> None:
    for change in small.plan.changes:
        (small.root / change.path).write_bytes(change.after)
    assert nix_build(small, "dep3", tmp_path).status != 0


# --- an installed vLLM ----------------------------------------------------------------------


@pytest.fixture
def installed(case: Case, tmp_path: Path) -> Case:
    """A site-packages folder with the tree and a dist-info whose RECORD is right."""
    site = tmp_path / "venv/lib/python3/site-packages"
    case.copy(site)
    # A release's own RECORD lists thousands of files that are not here.
    for info in site.glob("*.dist-info"):
        shutil.rmtree(info)
    info = site / f"vllm-{case.version}.dist-info"
    info.mkdir()
    rows = [
        (path.relative_to(site).as_posix(), *fingerprint(path.read_bytes()))
        for path in sorted(site.rglob("*"))
        if path.is_file()
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*rows, (f"{info.name}/RECORD", "", "")])
    (info / "RECORD").write_text(text.getvalue(), encoding="utf-8")
    tree = replace(case.plan.tree, root=site)
    return Case(case.name, site, replace(case.plan, tree=tree))


def test_the_dockerfile_line_patches_site_packages_once(installed: Case, tmp_path: Path) -> None:
    need("patch")
    before = {path: path.read_bytes() for path in installed.root.rglob("*") if path.is_file()}
    (tmp_path / PATCH).write_bytes(installed.patch("dep3"))
    command = run_line("dockerfile-patch").replace("/tmp/", f"{tmp_path}/")
    run_well(command, tmp_path, **python3(tmp_path, installed.root))
    for change in installed.plan.changes:
        assert (installed.root / change.path).read_bytes() == change.after
    changed = {path for path, data in before.items() if path.read_bytes() != data}
    assert changed == {installed.root / change.path for change in installed.plan.changes}
    assert run(command, tmp_path, **python3(tmp_path, installed.root)).status != 0


def test_after_a_patch_record_is_wrong_as_the_page_says(installed: Case) -> None:
    assert wrong_rows(installed.root) == []
    for change in installed.plan.changes:
        (installed.root / change.path).write_bytes(change.after)
    assert wrong_rows(installed.root) == sorted(change.path for change in installed.plan.changes)


def test_update_record_makes_record_right_again(installed: Case) -> None:
    write(installed.root, with_record(installed.plan).changes)
    assert wrong_rows(installed.root) == []
    for change in installed.plan.changes:
        assert (installed.root / change.path).read_bytes() == change.after


def test_the_dockerfile_line_that_applies_leaves_record_right(
    installed: Case, tmp_path: Path
) -> None:
    if not installed.has_a_real_plan:
        pytest.skip("the hand-made tree is too small for the command")
    variables = with_command(tmp_path, **python3(tmp_path, installed.root))
    assert run(run_line("dockerfile"), tmp_path, **variables).status == 0
    assert wrong_rows(installed.root) == []
    for change in installed.plan.changes:
        assert (installed.root / change.path).read_bytes() == change.after
    assert run(run_line("dockerfile"), tmp_path, **variables).status == 1


def test_the_nix_recipe_names_the_patch() -> None:
    assert f"./{PATCH}" in recipe("nix")


def run_line(name: str) -> str:
    """The shell command of a recipe's RUN instruction, its continued lines joined."""
    found = re.search(r"^RUN (.*)", recipe(name).replace("\\\n", ""), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].strip()


def python3(folder: Path, site: Path) -> dict[str, str]:
    """An environment whose python3 finds the installed package."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin/python3"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}


def fingerprint(data: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(data))


def wrong_rows(site: Path) -> list[str]:
    """The files that do not match their row in RECORD."""
    (record,) = site.glob("*.dist-info/RECORD")
    rows = csv.reader(io.StringIO(record.read_text(encoding="utf-8")))
    return sorted(
        name
        for name, digest, size in rows
        if digest and fingerprint((site / name).read_bytes()) != (digest, size)
    )
