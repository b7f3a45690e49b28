"""How a proof's process of its own is asked, and how it answers.

The job goes in as text on stdin and the row comes out as JSON on stdout, so that nothing the tree's
code does (a crash, a hang, a changed global) reaches the tool.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict

from codemods.prove.proof import Proof, ProofStatus, failed, skipped


class CannotRunError(Exception):
    """The proof lacks something that is not the rewrite's fault: one line says what."""


def serve(name: str, prove: Callable[[str], Proof]) -> None:
    """Be the process: read one job, answer with one row, whatever the tree's code does."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        row = prove(sys.stdin.read())
    except CannotRunError as reason:
        row = skipped(name, str(reason))
    except Exception as error:
        traceback.print_exc()
        row = failed(name, f"the tree's code raised {_described(error)}")
    json.dump(asdict(row), answer)
    answer.close()


def proof_from(text: str) -> Proof:
    """A process's answer. Raises ValueError when it is none."""
    data = json.loads(text)
    return Proof(data["name"], ProofStatus(data["status"]), data["detail"], data["figures"])


def _described(error: Exception) -> str:
    """An error in one line, with the last place in the code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}{where}: {message[:300]}"
