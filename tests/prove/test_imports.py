"""What a rewrite imports must be there, and must not lead back to the file that imports it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import FileChange, Tree
from codemods.prove import imports
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.prove.subject import Subject
from tests.plans import plan_of

FILES = {
    "vllm/__init__.py": "",
    "vllm/_version.py": "",
    "vllm/v1/__init__.py": "",
    "vllm/v1/worker/__init__.py": "",
    "vllm/v1/worker/gpu_model_runner.py": "",
    "vllm/v1/worker/gpu_worker.py": "import os\n",
    "vllm/v1/worker/warm.py": "def warm():\n    pass\n",
}
WORKER = "vllm/v1/worker/gpu_worker.py"


def proof(root: Path, after: str, files: Mapping[str, str] = {}) -> Proof:
    """The row for a rewrite that gives the worker this text."""
    for name, text in {**FILES, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    before = (root / WORKER).read_bytes()
    change = FileChange(WORKER, before, after.encode(), ("worker",))
    made = plan_of(changes=(change,), tree=Tree(root, "vllm"))
    return imports.prove(Subject(made, Checkout.find(root), made.recipes[0]), Options())


@pytest.mark.parametrize(
    "text",
    [
        "import json\nimport torch.nope\n",
        "from .warm import warm\n",
        "from vllm.v1.worker.warm import warm as other\n",
        "from . import warm\n",
        "import vllm.v1.worker.warm\n",
        "from vllm.v1.worker import warm\nwarm.warm()\n",
    ],
)
def test_what_is_there_is_accepted(text: str, tmp_path: Path) -> None:
    row = proof(tmp_path, text)
    assert row.status is ProofStatus.PASS, row


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from .warm import cold\n", "does not define it"),
        ("from .cold import warm\n", "which the tree does not have"),
        ("import os\n\n\ndef f():\n    from .warm import cold\n", "imports cold from .warm"),
        ("from vllm.v1.worker import warm\nwarm.cold()\n", "does not define cold"),
    ],
)
def test_what_is_not_there_fails(text: str, said: str, tmp_path: Path) -> None:
    row = proof(tmp_path, text)
    assert row.status is ProofStatus.FAIL
    assert f"{WORKER}:" in row.detail
    assert said in row.detail


CIRCLES = {
    "vllm/v1/worker/warm.py": "from vllm.v1.worker.deep import x\n\n\ndef warm():\n    pass\n",
    "vllm/v1/worker/deep.py": "from .gpu_worker import Worker\n\nx = 1\n",
}


def test_an_import_that_leads_back_fails(tmp_path: Path) -> None:
    row = proof(tmp_path, "from .warm import warm\n", CIRCLES)
    assert row.status is ProofStatus.FAIL
    assert "in a circle" in row.detail
    assert "deep.py" in row.detail


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("def f():\n    from .warm import warm\n", CIRCLES["vllm/v1/worker/deep.py"]),
        ("from .warm import warm\n", "def f():\n    from .gpu_worker import Worker\n\nx = 1\n"),
        (
            "from .warm import warm\n",
            "import typing\n\nif typing.TYPE_CHECKING:\n    from .gpu_worker import W\n\nx = 1\n",
        ),
    ],
)
def test_an_import_that_runs_later_or_never_leads_nowhere(
    text: str, deep: str, tmp_path: Path
) -> None:
    row = proof(tmp_path, text, {**CIRCLES, "vllm/v1/worker/deep.py": deep})
    assert row.status is ProofStatus.PASS, row


def test_what_was_wrong_before_is_not_the_rewrites(tmp_path: Path) -> None:
    files = {WORKER: "from .cold import warm\n"}
    assert proof(tmp_path, "from .cold import warm\nX = 1\n", files).status is ProofStatus.PASS
