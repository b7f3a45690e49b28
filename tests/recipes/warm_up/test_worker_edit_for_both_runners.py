"""The worker edit with a warm-up that is for whichever runner the worker has."""

from __future__ import annotations

from textwrap import indent

import pytest

from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Edited, Refusal
from codemods.recipes.warm_up import worker_edit
from tests.recipes.warm_up.workers import sources, worker_file
from tests.rewriting import rewrites

FUNCTION = "warm_both_up"
CALL = worker_edit.Call(FUNCTION, "the kernel of both", v1_only=False)
HEAD = """\
from .gpu.warmup import warmup_kernels


class Worker:
    def compile_or_warm_up_model(self):
        if self.use_v2_model_runner:
            warmup_kernels(self.model_runner)
        elif get_pp_group().is_last_rank:
            self.model_runner._dummy_sampler_run(None)
"""
CALLED = HEAD.replace("import warmup_kernels", f"import {FUNCTION}, warmup_kernels")
MONITOR = """\
        from vllm.utils.jit_monitor import activate as activate_jit_monitor

        activate_jit_monitor()
"""
WARM = f"{FUNCTION}(self.model_runner)\n"


def edit(text: str) -> Edited:
    return worker_edit.edit(worker_file(text.encode()), CALL, sources(FUNCTION))


def rewrite(data: bytes) -> bytes:
    module = edit(data.decode()).module
    return data if module is None else module.bytes


def body(text: str) -> str:
    return indent(text, "        ")


def test_the_call_is_put_behind_the_branch_without_a_guard() -> None:
    added = f"\n# Compile the kernel of both before the first request.\n{WARM}"
    rewrites(rewrite, HEAD + MONITOR, CALLED + body(added) + MONITOR)


def test_an_unguarded_call_is_there_already() -> None:
    outcome = edit(CALLED + body(WARM) + MONITOR).outcome
    assert (outcome.status, outcome.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)


def test_a_call_under_another_condition_is_refused() -> None:
    with pytest.raises(Refusal, match="on a path without the warm-up") as caught:
        edit(CALLED + body(f"if self.watched:\n    {WARM}") + MONITOR)
    assert caught.value.reason is Reason.NOT_REACHED


@pytest.mark.parametrize(
    "guarded",
    [
        f"if not self.use_v2_model_runner:\n    {WARM}",
        f"if self.use_v2_model_runner:\n    {WARM}",
        f"if self.use_v2_model_runner:\n    pass\nelse:\n    {WARM}",
    ],
)
def test_a_call_for_one_runner_is_refused(guarded: str) -> None:
    with pytest.raises(Refusal, match="on a path without the warm-up") as caught:
        edit(CALLED + body(guarded) + MONITOR)
    assert caught.value.reason is Reason.NOT_REACHED
