"""The trees that each consumer's tests run on: one made by hand, and four releases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from consumers import Case, hand_made

from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.release import ReleaseError, fetch

RELEASES = ("0.21.0", "0.23.0", "0.24.0", "0.26.0")


@pytest.fixture(
    scope="session",
    params=["hand-made", *(pytest.param(each, marks=pytest.mark.network) for each in RELEASES)],
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    root = tmp_path_factory.mktemp("tree") / "before"
    if request.param == "hand-made":
        return hand_made(root)
    return released(request.param, root)


@pytest.fixture
def small(tmp_path: Path) -> Case:
    return hand_made(tmp_path / "small")


def released(version: str, root: Path) -> Case:
    """A release's own files and the real plan for them."""
    try:
        found = fetch(version)
    except ReleaseError as error:
        pytest.skip(f"the release {version} cannot be read: {error}")
    shutil.copytree(found, root)
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    plan = make_plan(Checkout.find(root))
    assert plan.changes, f"{version} should be fixable: {plan.outcomes}"
    return Case(version, root, plan)
