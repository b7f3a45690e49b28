"""Starts what the GPU tests look at, once, and prints its table at the end.

GPUS=2 runs the cases of two GPUs in place of those of one; CASES names cases of
benchmarks/gpu/cases.py (`all`: every one); GPU_RESULTS is a file that gets every result as JSON.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "gpu"
sys.path.insert(0, str(BENCHMARKS))

from cases import CASES  # noqa: E402
from record import Record, about  # noqa: E402
from runs import Result  # noqa: E402
from users_tree import Missing, Session, is_chosen  # noqa: E402

GPUS = int(os.environ.get("GPUS", "1"))
CHOSEN = os.environ.get("CASES", "")
_TABLE: list[str] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        chosen = [case for case in CASES if is_chosen(case, GPUS, CHOSEN)]
        metafunc.parametrize("case", chosen, ids=[case.name for case in chosen])


@pytest.fixture(scope="session")
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """Everything running for the tree of the command line; skips where something is missing."""
    tree: Path | None = request.config.getoption("--vllm-tree")
    if tree is None:
        pytest.skip("no --vllm-tree was given")
    try:
        work = tmp_path_factory.mktemp("gpu")
        running = Session(tree, work, GPUS, CHOSEN, recorder())
    except Missing as missing:
        pytest.skip(str(missing))
    yield running
    running.close()
    _TABLE.extend(running.lines)


def recorder() -> Callable[[Result], None]:
    """What keeps a result in the file that GPU_RESULTS names."""
    path = os.environ.get("GPU_RESULTS")
    if path is None:
        return lambda result: None
    return Record(Path(path), Path(path), about(os.environ.get("COMMIT", "unknown"))).add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _TABLE:
        terminalreporter.section("before and after the rewrite")
        terminalreporter.write_line("\n".join(_TABLE))
