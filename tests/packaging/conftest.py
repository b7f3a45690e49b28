"""The trees that the consumers' tests run on: small ones made here, and real releases."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from consumers import Case, crlf_tree, fixture_tree, made, release, run

from tests.forks.profiles import FRESH

TREES = {"small": fixture_tree, "crlf": crlf_tree}


@pytest.fixture(scope="session")
def case_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """A case by its name, made when it is first asked for."""

    @cache
    def make(name: str) -> Case:
        folder = tmp_path_factory.mktemp(name)
        build = TREES.get(name, partial(release, name))
        return made(name, build(folder / "before"), folder)

    return make


@pytest.fixture(scope="session")
def small(case_of: Callable[[str], Case]) -> Case:
    """The fixture fork, with what is hard for consumers in it."""
    return case_of("small")


@pytest.fixture(scope="session")
def crlf(case_of: Callable[[str], Case]) -> Case:
    """The same tree with CRLF line ends throughout."""
    return case_of("crlf")


# What is hard in a release is in the small tree too: a search tries both.
CASES = ("small", pytest.param("0.26.0", marks=pytest.mark.network)) if FRESH else ("small",)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture(scope="session")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """0.29.0, to which the patch of 0.26.0 applies although it is not needed."""
    return release("0.29.0", tmp_path_factory.mktemp("0.29.0") / "newer")


@pytest.fixture(scope="session")
def older(case_of: Callable[[str], Case]) -> Case:
    return case_of("0.26.0")


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where pip reaches no package index: what needs one installs the build backend."""
    folder = tmp_path_factory.mktemp("index")
    command = [sys.executable, "-I", "-m", "pip", "download", "-q", "--no-deps", "hatchling"]
    ran = run(command, folder)
    if ran.status != 0:
        pytest.skip(f"pip reaches no package index: {ran.output.strip().splitlines()[-1]}")
