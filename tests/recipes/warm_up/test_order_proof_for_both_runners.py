"""Order of a warm-up that is for whichever runner the worker has."""

from __future__ import annotations

import textwrap

import pytest

from codemods.prove.proof import ProofStatus
from codemods.recipes.warm_up import order_proof

FUNCTION = "warm_both_up"
BRANCH = """
if self.use_v2_model_runner:
    warmup_kernels(self.model_runner)
elif get_pp_group().is_last_rank:
    self.model_runner._dummy_sampler_run(None)
"""
WARM = f"{FUNCTION}(self.model_runner)\n"
MONITOR = """
from vllm.utils.jit_monitor import activate as activate_jit_monitor
activate_jit_monitor()
"""


def under(test: str) -> str:
    return f"if {test}:\n    {WARM}"


def proof(*parts: str, v1_only: bool = False) -> tuple[ProofStatus, str]:
    body = textwrap.indent("".join(parts), "        ")
    head = f"from .gpu.warmup import {FUNCTION}, warmup_kernels\n"
    method = f"    def compile_or_warm_up_model(self) -> float:\n{body}\n"
    row = order_proof.prove_module(
        f"{head}class Worker:\n{method}".encode(), FUNCTION, v1_only=v1_only
    )
    return row.status, row.detail


@pytest.mark.parametrize("end", [MONITOR, "return 0.0\n"])
def test_a_call_that_every_path_takes_is_in_order(end: str) -> None:
    assert proof(BRANCH, WARM, end)[0] is ProofStatus.PASS


def test_the_same_call_is_wrong_for_a_warm_up_of_v1_alone() -> None:
    status, detail = proof(BRANCH, WARM, MONITOR, v1_only=True)
    assert status is ProofStatus.FAIL
    assert "for the V2 runner too" in detail


@pytest.mark.parametrize("test", ["not self.use_v2_model_runner", "self.use_v2_model_runner"])
@pytest.mark.parametrize("end", [MONITOR, "return 0.0\n"])
def test_a_call_for_one_runner_leaves_the_other_cold(test: str, end: str) -> None:
    status, detail = proof(BRANCH, under(test), end)
    assert status is ProofStatus.FAIL
    assert "on a path without the warm-up" in detail


def test_a_call_behind_the_monitor_is_too_late() -> None:
    status, detail = proof(BRANCH, MONITOR, WARM)
    assert status is ProofStatus.FAIL
    assert "warms up after the monitor is active" in detail
