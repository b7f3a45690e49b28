"""The worker edit with a warm-up that is for whichever runner the worker has."""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import indent

import pytest

from codemods.engine.checkout import WORKER
from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Edited, Refusal, Sources
from codemods.recipes.warm_up import worker
from codemods.recipes.warm_up.module import MODULE
from tests.checkouts import checkout
from tests.rewriting import rewrites

FUNCTION = "warm_both_up"
CALL = worker.Call(FUNCTION, "the kernel of both", v1_only=False)
HEAD = """\
from .gpu.warmup import warmup_kernels


class Worker:
    def compile_or_warm_up_model(self):
        if self.use_v2_model_runner:
            warmup_kernels(self.model_runner)
        elif get_pp_group().is_last_rank:
            self.model_runner._dummy_sampler_run(None)
"""
IMPORTING = HEAD.replace("import warmup_kernels", f"import {FUNCTION}, warmup_kernels")
MONITOR = """\
        from vllm.utils.jit_monitor import activate as activate_jit_monitor

        activate_jit_monitor()
"""
WARM = f"{FUNCTION}(self.model_runner)\n"


WARMUP = f"""\
def warmup_kernels(model_runner):
    pass


def {FUNCTION}(model_runner):
    pass
"""


def edit(text: str) -> Edited:
    with tempfile.TemporaryDirectory() as folder:
        files = {WORKER: text, MODULE: WARMUP}
        sources = Sources(checkout(Path(folder), files))
        file = sources.read(WORKER)
        assert file is not None
        return worker.edit(file, CALL, sources)


def rewrite(data: bytes) -> bytes:
    module = edit(data.decode()).module
    return data if module is None else module.bytes


def body(text: str) -> str:
    return indent(text, "        ")


def test_the_call_is_put_behind_the_branch_without_a_guard() -> None:
    added = f"\n# Compile the kernel of both before the first request.\n{WARM}"
    rewrites(rewrite, HEAD + MONITOR, IMPORTING + body(added) + MONITOR)


def test_an_unguarded_call_is_there_already() -> None:
    outcome = edit(IMPORTING + body(WARM) + MONITOR).outcome
    assert (outcome.status, outcome.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)


@pytest.mark.parametrize(
    "guarded",
    [
        f"if self.watched:\n    {WARM}",
        f"if not self.use_v2_model_runner:\n    {WARM}",
        f"if self.use_v2_model_runner:\n    {WARM}",
        f"if self.use_v2_model_runner:\n    pass\nelse:\n    {WARM}",
    ],
)
def test_a_call_that_some_engines_pass_over_is_refused(guarded: str) -> None:
    with pytest.raises(Refusal, match="for either runner on every path") as caught:
        edit(IMPORTING + body(guarded) + MONITOR)
    assert caught.value.reason is Reason.NOT_REACHED
