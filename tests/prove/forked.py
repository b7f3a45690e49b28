"""Proofs in a forked child of a process that has torch already: the tests' fast way to run many."""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, ProofStatus, failed, skipped


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
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_process(name, module, job, folder, interpret, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    if not text:
        return failed(name, "its process did not answer")
    data = json.loads(text)
    return Proof(data["name"], ProofStatus(data["status"]), data["detail"], data["figures"])


def _forget_triton() -> None:
    """Have Triton imported again: its own functions are made for the interpreter then, or not."""
    for name in [one for one in sys.modules if one.partition(".")[0] == "triton"]:
        if not name.startswith("triton._C"):
            del sys.modules[name]


def _be_the_process(
    name: str, module: str, job: str, folder: Path, interpret: bool, writing: int
) -> None:
    row = failed(name, "its process ended early")
    try:
        (folder / "triton-cache").mkdir()
        os.environ["TRITON_CACHE_DIR"] = str(folder / "triton-cache")
        os.environ["TRITON_INTERPRET"] = "1" if interpret else "0"
        if interpret:
            _forget_triton()
        os.environ["TMPDIR"] = str(folder)
        os.chdir(folder)
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
        proof: Any = importlib.import_module(module)
        row = proof.prove(proof.Job.from_json(job))
    except CannotRunError as reason:
        row = skipped(name, str(reason))
    except BaseException as error:
        row = failed(name, f"raised {type(error).__name__}: {error}")
    finally:
        with os.fdopen(writing, "w", encoding="utf-8") as answer:
            json.dump(asdict(row), answer)
        os._exit(0)
