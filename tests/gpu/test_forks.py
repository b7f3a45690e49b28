"""The trees shaped like forks that are served on a GPU: the tool rewrites each of them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from codemods.release.names import Source
from tests.releases.trees import run, tree_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "gpu"))

import forks


@pytest.mark.parametrize("name", forks.FORKS)
def test_both_recipes_rewrite_it(name: str, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(tree_of(forks.BASE, Source.WHEEL), release)
    forks.make(release, name, tmp_path / "fork")
    for verb, verdict in (("check", "fixable"), ("apply", "fixed"), ("check", "already-fixed")):
        ran = run(verb, tmp_path / "fork", "--recipe", "all", "--json")
        found = {one["recipe"]: one["verdict"] for one in json.loads(ran.stdout)["recipes"]}
        assert found == {"slot-mapping": verdict, "kv-block-zeroing": verdict}, ran.stderr
