"""The worker's warm-up method: which it is, what it runs and what activates the monitor."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile
from codemods.recipes.warm_up.method import METHOD, Method, find_method, runs_warmup

HEAD = "from .gpu.warmup import warmup_kernels as warm\n"


def worker(text: str) -> SourceFile:
    return SourceFile("vllm/gpu_worker.py", dedent(text).encode())


def classes(**methods: str) -> str:
    return "".join(
        f"class {name}:\n    def {method}(self):\n        pass\n"
        for name, method in methods.items()
    )


def method(body: str, others: str = "", head: str = HEAD) -> Method:
    own = indent(f"def compile_or_warm_up_model(self):\n{indent(dedent(body), '    ')}", "    ")
    return find_method(worker(f"{head}\n\nclass Worker:\n{own}\n{indent(dedent(others), '    ')}"))


def test_workers_own_method_is_taken_before_another_classs() -> None:
    text = classes(Other=METHOD, Worker=METHOD, Third=METHOD)
    assert find_method(worker(text)).owner.name.value == "Worker"


def test_a_worker_by_another_name_is_known_by_its_method() -> None:
    text = classes(Other="warm_up", GPUWorker=METHOD, Third="start")
    assert find_method(worker(text)).owner.name.value == "GPUWorker"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", Reason.NO_ANCHOR),
        ("def compile_or_warm_up_model(self): ...\n", Reason.NO_ANCHOR),
        ("class Worker:\n    def compile_or_warm_up(self): ...\n", Reason.NO_ANCHOR),
        (classes(A=METHOD, B=METHOD), Reason.AMBIGUOUS),
    ],
)
def test_no_method_and_two_are_refused(text: str, reason: Reason) -> None:
    with pytest.raises(Refusal) as caught:
        find_method(worker(text))
    assert caught.value.reason is reason


def test_the_private_method_that_does_the_work_is_the_one() -> None:
    found = method(
        "return self._warm_all()",
        "def _warm_all(self):\n    warm(self.model_runner)\n    return 1.0\n",
    )
    assert found.function.name.value == "_warm_all"


def test_a_private_method_that_only_helps_is_not() -> None:
    found = method("self._note()\nwarm(self.model_runner)", "def _note(self):\n    return 1.0\n")
    assert found.function.name.value == "compile_or_warm_up_model"


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        ("warm(self.model_runner)", [True]),
        ("warmup_kernels(self.model_runner)", [True]),
        ("self.model_runner._dummy_sampler_run(x)", [True]),
        ("self._warm_all()", [True]),
        ("self.cold(x)", [False]),
        ("cold(self.model_runner)", [False]),
        ("x = 1\nwarm(x)\ny = 2", [False, True, False]),
    ],
)
def test_a_step_is_known_by_what_it_calls(body: str, runs: list[bool]) -> None:
    found = method(body, "def _warm_all(self):\n    if x:\n        warm(1)\n")
    assert [runs_warmup(found, one) for one in found.leaves] == runs


@pytest.mark.parametrize(
    ("body", "monitors"),
    [
        ("from vllm.utils.jit_monitor import activate\nactivate()", (1,)),
        ("self.jit_monitor.activate()", (0,)),
        ("self._maybe_watch()", (0,)),
        ("watch()", (0,)),
        ("jit_monitor.deactivate()", ()),
        ("jit_monitor.is_active()", ()),
        ("self.monitor.start()", ()),
        ("x = 1", ()),
    ],
)
def test_the_monitor_is_known_by_what_it_is(body: str, monitors: tuple[int, ...]) -> None:
    head = "import jit_monitor\n\ndef watch():\n    jit_monitor.activate()\n"
    found = method(body, "def _maybe_watch(self):\n    jit_monitor.activate()\n", head)
    assert found.monitors == monitors
