"""Runs proofs, and tests of a tree, in forked children of one process that has torch already.

The process holds torch and little else, so that a fork of it is cheap; a fork of pytest is not.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, ProofStatus, failed, skipped

ROOT = Path(__file__).parents[2]
# Does not import them, as `importorskip` does: this process is to stay small.
needs_the_verify_extra = pytest.mark.skipif(
    not all(map(find_spec, ("numpy", "torch", "triton"))), reason="needs the verify extra"
)


def run_worker(
    name: str,
    module: str,
    job: str,
    folder: Path,
    timeout: float,
    *,
    interpret: bool = False,
    device: str = "cpu",
) -> Proof:
    """As `codemods.prove.runner.run_worker`, on the CPU, without a time limit or a clean start."""
    del timeout
    assert device == "cpu"
    text = _server().answer("prove", name, module, job, str(folder), interpret)
    if not text:
        return failed(name, "its process did not answer")
    data = json.loads(text)
    return Proof(data["name"], ProofStatus(data["status"]), data["detail"], data["figures"])


@dataclass(frozen=True)
class Tested:
    """How pytest ended, and what it printed."""

    returncode: int
    stdout: str


def run_tests(root: Path, module: str) -> Tested:
    """pytest on a test module of a tree, whose package is imported from the tree."""
    return Tested(*json.loads(_server().answer("test", str(root), module)))


class _Server:
    """This file as a program, which answers a line with a line."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-W", "ignore", __file__],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def answer(self, *question: object) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the process ended with status {self.process.wait()}"
        return line.strip()


@cache
def _server() -> _Server:
    return _Server()


def _serve() -> None:
    import torch  # noqa: F401
    import triton  # noqa: F401

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a tree may print
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _be_the_child(*json.loads(line), writing=writing)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as answer:
            print(answer.read(), file=answers, flush=True)
        os.waitpid(child, 0)


def _be_the_child(what: str, *arguments: Any, writing: int) -> NoReturn:
    try:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
        found = _proved(*arguments) if what == "prove" else _tested(*arguments)
        with os.fdopen(writing, "w", encoding="utf-8") as answer:
            json.dump(found, answer)
    finally:
        os._exit(0)


def _tested(root: str, module: str) -> tuple[int, str]:
    os.chdir(root)
    sys.path[:] = [root, *(one for one in sys.path if one != str(Path(__file__).parent))]
    with tempfile.TemporaryFile("w+") as printed:
        os.dup2(printed.fileno(), 1)
        code = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", root, module])
        sys.stdout.flush()
        printed.seek(0)
        return int(code), printed.read()


def _forget_triton() -> None:
    """Have Triton imported again: its own functions are made for the interpreter then, or not."""
    for name in [one for one in sys.modules if one.partition(".")[0] == "triton"]:
        if not name.startswith("triton._C"):
            del sys.modules[name]


def _proved(name: str, module: str, job: str, folder: str, interpret: bool) -> dict[str, Any]:
    cache_folder = Path(folder, "triton-cache")
    cache_folder.mkdir()
    os.environ["TRITON_CACHE_DIR"] = str(cache_folder)
    os.environ["TRITON_INTERPRET"] = "1" if interpret else "0"
    if interpret:
        _forget_triton()
    os.environ["TMPDIR"] = folder
    os.chdir(folder)
    try:
        proof: Any = importlib.import_module(module)
        row = proof.prove(proof.Job.from_json(job))
    except CannotRunError as reason:
        row = skipped(name, str(reason))
    except BaseException as error:
        row = failed(name, f"raised {type(error).__name__}: {error}")
    return asdict(row)


if __name__ == "__main__":
    _serve()
