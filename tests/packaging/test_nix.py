"""The page's Nix expression, built by nix-build on a small vllm in the place of nixpkgs' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers import COMPLAINT, FORMS, Case, Ran, example, need, run, update_patch

# What the example needs of nixpkgs: an override, and patches applied as stdenv's patchPhase does.
DEFAULT = """\
let
  make = attributes: derivation {{
    name = "vllm-${{attributes.version}}";
    system = builtins.currentSystem;
    builder = "/bin/sh";
    inherit (attributes) src patches;
    args = [ "-ec" ''
      export PATH=/usr/bin:/bin
      cp -r $src $out && chmod -R u+w $out && cd $out
      for each in $patches; do patch -p1 < $each; done
    '' ];
  }};
  own = {{ version = "{version}"; src = {tree}; patches = [ ]; }};
  vllm.overridePythonAttrs = change: make (own // change own);
in
{recipe}
"""


def nix_build(tree: Path, version: str, folder: Path) -> Ran:
    need("nix-build", "patch")
    text = DEFAULT.format(version=version, tree=tree, recipe=example("nix"))
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


def built(ran: Ran) -> Path:
    assert ran.status == 0, ran.output
    assert not COMPLAINT.search(ran.output), ran.output
    return Path(ran.output.strip().splitlines()[-1])


def test_the_recipe_builds_the_fix_again_and_again(small: Case, tmp_path: Path) -> None:
    folder = tmp_path / "nix"
    folder.mkdir()
    for _ in range(2):
        assert update_patch(folder, small.root, small.version).status == 0
        small.assert_fixed(built(nix_build(small.root, small.version, folder)))


@pytest.mark.network
def test_a_build_of_a_release_that_was_not_asked_about_stops(
    older: Case, newer: Path, tmp_path: Path
) -> None:
    (tmp_path / "warm-up-slot-mapping-0.26.0.patch").write_bytes(older.patches["dep3"])
    ran = nix_build(newer, "0.29.0", tmp_path)
    assert ran.status != 0
    assert "warm-up-slot-mapping-0.29.0.patch" in ran.output


@pytest.mark.parametrize("form", FORMS)
def test_nix_build_applies_each_form(case: Case, form: str, tmp_path: Path) -> None:
    (tmp_path / f"warm-up-slot-mapping-{case.version}.patch").write_bytes(case.patches[form])
    case.assert_fixed(built(nix_build(case.root, case.version, tmp_path)))


def test_nix_build_fails_on_a_tree_that_has_the_fix(small: Case, tmp_path: Path) -> None:
    fixed = small.copy_fixed(tmp_path / "fixed")
    (tmp_path / f"warm-up-slot-mapping-{small.version}.patch").write_bytes(small.patches["dep3"])
    assert nix_build(fixed, small.version, tmp_path).status != 0
