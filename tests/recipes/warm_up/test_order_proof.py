"""Order: the warm-up after the V1/V2 branch and before the monitor, on every path."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.engine.plan import Plan
from codemods.prove.proof import Options, Proof, ProofStatus
from codemods.recipes.warm_up import order_proof
from tests.recipes.slot_mapping.rewritten import CALL, SEED, plan, subject, swap

FUNCTION = "warmup_v1_slot_mapping_kernel"
BRANCH = """
if self.use_v2_model_runner:
    warmup_kernels(self.model_runner, self.execute_model, self.sample_tokens)
elif get_pp_group().is_last_rank:
    self.model_runner._dummy_sampler_run(None)
"""
WARM = """
if not self.use_v2_model_runner:
    warmup_v1_slot_mapping_kernel(self.model_runner)
"""
MONITOR = """
from vllm.utils.jit_monitor import activate as activate_jit_monitor
activate_jit_monitor()
"""


def proof(*parts: str, beside: str = "", top: str = "") -> tuple[ProofStatus, str]:
    """The row for a worker whose method is `parts`; `beside` are its other methods."""
    body = textwrap.indent("".join(parts), "        ")
    head = "from .gpu.warmup import warmup_kernels, warmup_v1_slot_mapping_kernel\n" + top
    method = f"    def compile_or_warm_up_model(self) -> float:\n{body}\n"
    methods = textwrap.indent(textwrap.dedent(beside), "    ")
    row = order_proof.prove_module(f"{head}class Worker:\n{method}{methods}".encode(), FUNCTION)
    return row.status, row.detail


GOOD = {
    "in line": (BRANCH, WARM, MONITOR),
    "statements between": (BRANCH, WARM, "os.environ['STARTED'] = '1'\n", MONITOR),
    "an early return": ("if self.skip:\n    return 0.0\n", BRANCH, WARM, MONITOR, "return 1.0\n"),
    "the guard the other way round": (
        BRANCH,
        "if self.use_v2_model_runner:\n    pass\nelse:\n    warmup_v1_slot_mapping_kernel(self)\n",
        MONITOR,
    ),
    "the flag in a local name": (
        "v2 = self.use_v2_model_runner\n",
        BRANCH,
        "if not v2:\n    warmup_v1_slot_mapping_kernel(self)\n",
        MONITOR,
    ),
    "the monitor under a condition": (
        BRANCH,
        WARM,
        "if self.watch:",
        textwrap.indent(MONITOR, " "),
    ),
    "the branch in a with": ("with self.context:", textwrap.indent(BRANCH, " "), WARM, MONITOR),
    "a loop before": ("for size in self.sizes:\n    self.run(size)\n", BRANCH, WARM, MONITOR),
    "a try before": ("try:\n    self.load()\nexcept OSError:\n    pass\n", BRANCH, WARM, MONITOR),
    "an earlier if on the flag": (
        "if self.use_v2_model_runner:\n    self.prepare()\n",
        BRANCH,
        WARM,
        MONITOR,
    ),
    "in the V1 arm, which every V1 path takes": (
        "if self.use_v2_model_runner:\n    warmup_kernels(self)\nelse:\n",
        "    warmup_v1_slot_mapping_kernel(self)\n",
        "    if get_pp_group().is_last_rank:\n        self.model_runner._dummy_sampler_run(None)\n",
        MONITOR,
    ),
    "before the branch, for V1": (WARM, BRANCH, MONITOR),
    "no monitor": (BRANCH, WARM, "return 0.0\n"),
    "no monitor and an early return": (
        "if self.skip:\n    return 0.0\n",
        BRANCH,
        WARM,
        "return 1.0\n",
    ),
    "an alias of the monitor": (
        BRANCH,
        WARM,
        "from vllm.utils import jit_monitor\nstart = jit_monitor.activate\nstart()\n",
    ),
}
BAD = {
    "a return between": (BRANCH, "if self.eager:\n    return 0.0\n", WARM, MONITOR),
    "after the monitor": (BRANCH, MONITOR, WARM),
    "before the branch, for either runner": (
        "warmup_v1_slot_mapping_kernel(self.model_runner)\n",
        BRANCH,
        MONITOR,
    ),
    "never": (BRANCH, MONITOR),
    "on the last rank only": (
        BRANCH + "    warmup_v1_slot_mapping_kernel(self.model_runner)\n",
        MONITOR,
    ),
    "under a condition of its own": (
        BRANCH,
        "if not self.use_v2_model_runner and self.warm:\n    warmup_v1_slot_mapping_kernel(self)\n",
        MONITOR,
    ),
    "for the V2 runner too": (BRANCH, "warmup_v1_slot_mapping_kernel(self)\n", MONITOR),
    "for the V2 runner only": (
        BRANCH,
        "if self.use_v2_model_runner:\n    warmup_v1_slot_mapping_kernel(self)\n",
        MONITOR,
    ),
    "in a loop that may not run": (
        BRANCH,
        "for _ in self.tables:",
        textwrap.indent(WARM, " "),
        MONITOR,
    ),
    "in a try that goes on": (
        BRANCH,
        "try:\n    self.check()",
        textwrap.indent(WARM, "    "),
        "except OSError:\n    pass\n",
        MONITOR,
    ),
    "where exceptions are suppressed": (
        BRANCH,
        "with suppress(OSError):\n    self.check()",
        textwrap.indent(WARM, "    "),
        MONITOR,
    ),
    "with the monitor in a finally": (
        "try:",
        textwrap.indent(BRANCH + WARM, "    "),
        "finally:",
        textwrap.indent(MONITOR, "    "),
    ),
    "after a second monitor call in one arm": (
        BRANCH,
        "if self.eager:",
        textwrap.indent(MONITOR, "    "),
        WARM,
        MONITOR,
    ),
    "no monitor, and a return before it": (BRANCH, "if self.eager:\n    return 0.0\n", WARM),
    "the monitor by an alias": (
        BRANCH,
        "from vllm.utils import jit_monitor\nstart = jit_monitor.activate\nstart()\n",
        WARM,
    ),
    "the monitor as an argument of a call": (
        BRANCH,
        "from vllm.utils.jit_monitor import activate\nself.log(activate())\n",
        WARM,
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_call_in_its_place_is_proved(name: str) -> None:
    status, detail = proof(*GOOD[name])
    assert status is ProofStatus.PASS, detail


@pytest.mark.parametrize("name", BAD)
def test_a_call_out_of_place_fails(name: str) -> None:
    status, detail = proof(*BAD[name])
    assert status is ProofStatus.FAIL, detail


@pytest.mark.parametrize("name", ["_maybe_activate_jit_monitor", "_start_watching"])
def test_a_monitor_in_a_method_of_the_worker_is_found(name: str) -> None:
    beside = f"""
    def {name}(self):
        from vllm.utils.jit_monitor import activate
        activate()
    """
    status, detail = proof(BRANCH, WARM, f"self.{name}()\n", beside=beside)
    assert (status, "before the JIT monitor" in detail) == (ProofStatus.PASS, True)
    assert proof(BRANCH, f"self.{name}()\n", WARM, beside=beside)[0] is ProofStatus.FAIL


def test_a_monitor_imported_at_the_top_is_found() -> None:
    top = "from acme.watch.jit_monitor import begin as report_compiles\n"
    assert proof(BRANCH, "report_compiles()\n", WARM, top=top)[0] is ProofStatus.FAIL
    assert proof(BRANCH, WARM, "report_compiles()\n", top=top)[0] is ProofStatus.PASS


def test_a_worker_without_the_flag_may_call_without_it() -> None:
    branch = "if get_pp_group().is_last_rank:\n    self.model_runner._dummy_sampler_run(None)\n"
    call = "warmup_v1_slot_mapping_kernel(self.model_runner)\n"
    assert proof(branch, call, MONITOR)[0] is ProofStatus.PASS


def test_the_inner_method_is_judged_where_the_outer_one_only_calls_it() -> None:
    beside = "def _compile_or_warm_up_model(self):\n" + textwrap.indent(
        BRANCH + WARM + MONITOR, "    "
    )
    assert proof("return self._compile_or_warm_up_model()\n", beside=beside)[0] is ProofStatus.PASS


def test_a_failure_names_the_line() -> None:
    _, detail = proof(BRANCH, MONITOR, WARM)
    assert detail == (
        "worker: line 11 activates the monitor on a path without the warm-up behind the V1/V2 "
        "branch; line 14 warms up after the monitor is active"
    )


def proved(made: Plan) -> Proof:
    return order_proof.prove(subject(made), Options(), function=FUNCTION)


def test_a_rewritten_worker_is_proved(tmp_path: Path) -> None:
    assert proved(plan(tmp_path)).status is ProofStatus.PASS


def test_a_call_after_the_monitor_fails(tmp_path: Path) -> None:
    late = swap(CALL + SEED, SEED)
    end = "        return CompilationTimes("
    row = proved(plan(tmp_path, worker=lambda text: swap(end, CALL + end)(late(text))))
    assert row.status is ProofStatus.FAIL


def test_a_plan_that_leaves_the_worker_out_is_skipped(tmp_path: Path) -> None:
    made = plan(tmp_path)
    (one,) = made.recipes
    outcomes = tuple(o for o in one.outcomes if o.edit != "worker")
    row = proved(replace(made, recipes=(replace(one, outcomes=outcomes),)))
    assert (row.status, row.detail) == (ProofStatus.SKIPPED, "the worker edit was left out")
