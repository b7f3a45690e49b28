"""What a warm-up changes and does not put back is told from what it makes for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason, Status
from codemods.engine.planning import make_plan
from tests.forks import trees
from tests.recipes.slot_mapping.proofs.planted import Entry, planted

DTYPE = "old = torch.get_default_dtype()\ntorch.set_default_dtype(torch.half)\n"
KEPT = """
kept = model_runner.positions.clone()
model_runner.positions.zero_()
model_runner.positions.copy_(kept)
"""
LEFT = {
    "global KEPT\nKEPT = positions = 1\n": "writes to KEPT",
    "del model_runner.positions\n": "writes to model_runner.positions",
    'setattr(model_runner, "warm", True)\n': "writes to model_runner.warm",
    "model_runner.positions += 1\n": "writes to model_runner.positions",
    "model_runner.positions[:2].view(-1).add_(1)\n": "writes to model_runner.positions[:2]",
    "model_runner.requests_seen.append(1)\n": "writes to model_runner.requests_seen",
    "for group in groups:\n    group.slot_mapping.gpu.fill_(5)\n": "slot_mapping.gpu",
    "from torch import manual_seed as seed\n\nseed(0)\n": "with torch.manual_seed",
    'import os as system\n\nsystem.environ.pop("A", None)\n': "writes to system.environ",
    DTYPE: "set_default_dtype",
    "def helper():\n    torch.set_num_threads(1)\n\nhelper()\n": "torch.set_num_threads",
}
PUT_BACK = (
    "own = model_runner.positions[:1].clone()\nown.fill_(1)\n",
    "model_runner.positions.cpu().zero_()\n",
    KEPT,
    "kept = model_runner.lora\nmodel_runner.lora = None\nmodel_runner.lora = kept\n",
    DTYPE + "torch.set_default_dtype(old)\n",
    "with torch.random.fork_rng():\n    torch.manual_seed(0)\n",
    "with torch.set_grad_enabled(False):\n    pass\n",
    "torch.rand(2, generator=torch.Generator())\n",
    "import numpy as np\n\nnp.random.default_rng(0)\n",
    "seen = set()\nseen.add(1)\nmore = {}\nmore.update(a=1)\n",
    "for group in groups:\n    group.slot_mapping.gpu[:1] = -1\n",
    "import os\n\nos.environ.get('A')\n",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    return trees.fork("00-monitor-in-triton-utils").tree.write_to(folder)


def outcome(root: Path, early: str) -> tuple[Status, Reason, str]:
    entry = Entry("", (), None, {"early": early})
    after = planted(entry, Checkout.find(root)).after.checkout
    plan = make_plan(after, [registry.get("slot-mapping")])
    found = next(one for one in plan.outcomes if one.edit == "warmup")
    return found.status, found.reason, found.detail


@pytest.mark.parametrize(("early", "says"), LEFT.items())
def test_what_is_left_changed_is_harmful(root: Path, early: str, says: str) -> None:
    status, reason, detail = outcome(root, early)
    assert (status, reason) == (Status.REFUSED, Reason.HARMFUL)
    assert says in detail


@pytest.mark.parametrize("early", PUT_BACK)
def test_what_is_its_own_or_is_put_back_is_no_harm(root: Path, early: str) -> None:
    assert outcome(root, early)[:2] == (Status.PRESENT, Reason.ALREADY_PRESENT)
