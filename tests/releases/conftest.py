"""One rewritten release after another, for the tests that ask about it."""

from __future__ import annotations

import pytest

from codemods.engine.plan import Verdict
from tests.forks.conftest import parsed_once
from tests.releases.trees import (
    TRIED,
    Pinned,
    Rewritten,
    checkout,
    files_under,
    git,
    name_of,
    run,
    tree_of,
)

__all__ = ["parsed_once", "rewritten"]


@pytest.fixture(
    scope="module",
    params=[pinned for pinned in TRIED if pinned.expected.verdict is Verdict.FIXABLE],
    ids=name_of,
)
def rewritten(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Rewritten:
    """A fixable release after check, diff, apply and check, its diff also applied by git."""
    pinned: Pinned = request.param
    folder = tmp_path_factory.mktemp(name_of(pinned))
    source = tree_of(pinned.version, pinned.source)
    original, tree, patched = (
        checkout(source, folder / name) for name in ("original", "tree", "patched")
    )
    first_check = run("check", tree, "--json")
    diff = run("diff", tree)
    assert files_under(tree) == files_under(original), "check or diff wrote to the tree"
    (folder / "fix.patch").write_bytes(diff.stdout)
    git(patched, "apply", folder / "fix.patch")
    applied = run("apply", tree, "--json")
    last_check = run("check", tree, "--json")
    return Rewritten(pinned, original, tree, patched, first_check, diff, applied, last_check)
