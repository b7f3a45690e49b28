"""Trees that the search once found wrong, kept: each is right now, or refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from codemods.engine.plan import Verdict
from tests.forks import running, trees
from tests.forks.judged import judged
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, Tree

IMPORT = "from .gpu.warmup import warmup_kernels\n"
METHOD = "    def compile_or_warm_up_model(self)"
RANK = "        elif get_pp_group().is_last_rank:\n"
SEED = "        set_random_seed(self.model_config.seed)\n"
CAPTURE = "            self.model_runner.capture_model()\n"
LOOP = "            self.model_runner._dummy_run(size)\n"
FLAG_SET = "        self.use_v2_model_runner = vllm_config.use_v2_model_runner\n"
STARTED = '            os.environ["ACME_ENGINE_STARTED"] = "1"\n'
ANY = "from typing import Any\n"
LAST = "    sample_tokens(None)\n"
TRITON = "from vllm.triton_utils import tl, triton\n"
MIDDLE = "@triton.jit\ndef _several_requests_kernel("
SIGNATURE = "self, num_reqs: int, query_start_loc: torch.Tensor, positions: torch.Tensor\n"
PLAIN = "00-monitor-in-triton-utils"


@dataclass(frozen=True)
class Case:
    """`old` becomes `new` wherever it stands in one file of a fork."""

    file: str
    old: str
    new: str
    fork: str = PLAIN

    def tree(self) -> Tree:
        tree = trees.fork(self.fork).tree
        text = tree.inside[self.file].decode()
        assert self.old in text
        return tree.edited(self.file, text.replace(self.old, self.new).encode())


RIGHT = {
    "the flag has another name": Case(WORKER, "use_v2_model_runner", "use_v2"),
    "the class has another name": Case(WORKER, "class Worker", "class GPUWorker"),
    "a method stands above it in an older class": Case(
        WORKER,
        "class Worker:\n",
        "class Old:\n    def warm(self):\n        return None\n\n\nclass Worker(Old):\n",
    ),
    "the warm-up is imported with a star": Case(WORKER, IMPORT, "from .gpu.warmup import *\n"),
    "the warm-up module is imported, not the function": Case(
        WORKER, IMPORT, "from .gpu import warmup\n\nwarmup_kernels = warmup.warmup_kernels\n"
    ),
    "Any is for the type checker alone, and annotations are lazy": Case(
        WARMUP,
        "from collections.abc import Callable\n" + ANY,
        "from __future__ import annotations\n\nfrom collections.abc import Callable\n"
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from typing import Any\n",
    ),
    "Any is for the type checker alone": Case(
        WARMUP,
        ANY,
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from typing import Any\n",
    ),
    "a method of another class has our name": Case(
        WARMUP,
        LAST,
        LAST + "\n\nclass Warm:\n    def warmup_v1_slot_mapping_kernel(self):\n        pass\n",
    ),
    "a decorator is long, and a kernel stands below": Case(
        BLOCK_TABLE,
        MIDDLE,
        MIDDLE.replace(
            "@triton.jit", "@triton.jit(debug=True, do_not_specialize_on_alignment=['slots_ptr'])"
        ),
        "01-several-launches",
    ),
    "the mapping takes one more argument with a default": Case(
        BLOCK_TABLE, SIGNATURE, SIGNATURE.replace("\n", ", extra: int = 0\n")
    ),
    "the branch's second arm is an if of its own": Case(
        WORKER, RANK, RANK.replace("elif", "if not self.use_v2_model_runner and")
    ),
}

REFUSED_OR_RIGHT = {
    "the worker's module binds our name": Case(
        WORKER, IMPORT, IMPORT + "\nwarmup_v1_slot_mapping_kernel = None\n"
    ),
    "the method binds our name": Case(
        WORKER, SEED, "        warmup_v1_slot_mapping_kernel = None\n" + SEED
    ),
    "the method has a parameter of our name": Case(
        WORKER, METHOD, METHOD.replace("self", "self, warmup_v1_slot_mapping_kernel=None")
    ),
    "the runner has another name": Case(WORKER, "self.model_runner", "self.runner"),
    "the engine is started before the branch": Case(WORKER, CAPTURE, STARTED + CAPTURE),
    "the engine is started in the loop over sizes": Case(WORKER, LOOP, STARTED + LOOP),
    "the engine is started in the V1 arm": Case(WORKER, RANK, RANK + STARTED),
    "the flag is set in the V1 arm": Case(
        WORKER, RANK, RANK + FLAG_SET.replace("        ", "            ", 1)
    ),
    "Any is something else": Case(WARMUP, ANY, "Any = int\n"),
    "torch is something else": Case(WARMUP, "import torch\n", "import torch\n\ntorch = None\n"),
    "our name is bound in the warm-up module": Case(
        WARMUP, LAST, LAST + "\n\nwarmup_v1_slot_mapping_kernel = warmup_kernels\n"
    ),
    "Triton comes with a star": Case(BLOCK_TABLE, TRITON, "from vllm.triton_utils import *\n"),
    "Triton is not imported": Case(BLOCK_TABLE, TRITON, ""),
    "lines end in CR alone": Case(WARMUP, "\n", "\r"),
    "the mapping takes one more argument": Case(
        BLOCK_TABLE, SIGNATURE, SIGNATURE.replace("\n", ", extra: int\n")
    ),
    "the mapping takes its arguments in another order": Case(
        BLOCK_TABLE,
        SIGNATURE,
        "self, query_start_loc: torch.Tensor, num_reqs: int, positions: torch.Tensor\n",
    ),
    "num_tokens is a constexpr": Case(
        BLOCK_TABLE, "    num_tokens,\n    max_num", "    num_tokens: tl.constexpr,\n    max_num"
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_tree_that_can_be_fixed_is(name: str) -> None:
    result = judged(RIGHT[name].tree())
    assert result.faults == (), result.diff
    assert result.plan.verdict is Verdict.FIXABLE, [o.detail for o in result.plan.refusals]


@pytest.mark.parametrize("name", REFUSED_OR_RIGHT)
def test_a_tree_that_is_hard_is_never_made_wrong(name: str) -> None:
    result = judged(REFUSED_OR_RIGHT[name].tree())
    assert result.faults == (), result.diff


def test_the_judge_knows_the_kernels_behind_a_star() -> None:
    tree = REFUSED_OR_RIGHT["Triton comes with a star"].tree()
    assert running.dismissed_faults(tree) != []
