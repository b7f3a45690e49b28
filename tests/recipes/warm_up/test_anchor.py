"""Behind which statement the call goes, and where there is no place for it."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile
from codemods.recipes.warm_up.anchor import find_anchor
from codemods.recipes.warm_up.method import find_method

SAMPLER = "self.model_runner._dummy_sampler_run(x)"
FIRST = 3  # the line of the method's first statement


def anchor_line(body: str, rest: str = "") -> int:
    """The line, from the method's first one, of the statement that the call goes behind."""
    text = (
        "class Worker:\n    def compile_or_warm_up_model(self):\n"
        + indent(dedent(body).strip() + "\n", " " * 8)
        + indent(dedent(rest), " " * 4)
        + "\n\ndef watch():\n    activate_jit_monitor()\n"
    )
    method = find_method(SourceFile("gpu_worker.py", text.encode()))
    return method.line(find_anchor(method)) - FIRST


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(SAMPLER, 0, id="alone"),
        pytest.param(f"before()\n{SAMPLER}\nbehind()", 1, id="in the middle"),
        pytest.param(f"{SAMPLER}\n{SAMPLER}", 1, id="the last"),
        pytest.param(f"if a:\n    {SAMPLER}\nelse:\n    b()\nc()", 0, id="a branch, whole"),
        pytest.param(f"with a:\n    {SAMPLER}\nactivate_jit_monitor()", 0, id="a block, whole"),
        pytest.param(
            f"with a:\n    {SAMPLER}\n    activate_jit_monitor()", 1, id="beside the monitor"
        ),
        pytest.param(f"try:\n    {SAMPLER}\n    return 1\nfinally:\n    b()", 1, id="in a try"),
        pytest.param(f"for a in b:\n    {SAMPLER}\nc()", 0, id="a loop, whole"),
    ],
)
def test_the_call_goes_behind_the_statement_that_warms(body: str, expected: int) -> None:
    assert anchor_line(body) == expected


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("a()", "found neither", -1),
        (f"activate_jit_monitor()\n{SAMPLER}", "activated before", 0),
        (f"if a:\n    activate_jit_monitor()\n{SAMPLER}", "activated before", 0),
        (f"engine_started()\n{SAMPLER}", "declared started", 0),
        (f"if a:\n    {SAMPLER}\n    return 1\nb()", "can leave the method", 0),
        (f"if a:\n    {SAMPLER}\nelse:\n    raise E\nb()", "can leave the method", 0),
        (f"if not group.is_last_rank:\n    return 1\n{SAMPLER}", "some pipeline ranks", 0),
        (f"return {SAMPLER}", "returns with the warm-up", 0),
        (f"watch()\n{SAMPLER}", "activated before", 0),
    ],
)
def test_a_method_without_a_place_is_refused(body: str, message: str, line: int) -> None:
    with pytest.raises(Refusal, match=message) as caught:
        anchor_line(body)
    assert caught.value.reason is Reason.NO_ANCHOR
    assert caught.value.line == line + FIRST


def test_a_v2_arm_may_leave_the_method() -> None:
    body = f"if self.use_v2:\n    warmup_kernels(a)\n    return 1\nelse:\n    {SAMPLER}\nb()"
    assert anchor_line(body) == 0


def test_an_early_return_that_asks_no_rank_is_passed_by() -> None:
    assert anchor_line(f"if self.skip:\n    return 1\n{SAMPLER}") == 2
