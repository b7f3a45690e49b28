"""The two judges against each other: what the reading one accepts, the running one does too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.forks import oracle, trace, trees
from tests.forks.mixing import CHANGES, METHOD, statement_in
from tests.forks.profiles import examples
from tests.forks.trees import WORKER

CALLS = (
    "if not self.use_v2_model_runner:\n    warmup_v1_slot_mapping_kernel(self.model_runner)",
    "warmup_v1_slot_mapping_kernel(self.model_runner)",
)
IMPORT = b"from .gpu.warmup import warmup_kernels"
FIXED = trees.fork("03-fix-in-place").tree.inside
PLAIN = trees.fork("00-monitor-in-triton-utils").tree.inside


@examples(300)
@given(st.data())
def test_what_one_judge_accepts_the_other_does_not_find_wrong(data: st.DataObject) -> None:
    def pick(options: Sequence[Any]) -> Any:
        return options[data.draw(st.integers(0, len(options) - 1))]

    text = PLAIN[WORKER].decode()
    for _ in range(data.draw(st.integers(0, 2))):
        text = pick(CHANGES[WORKER])(text, pick)
    before = text.encode()
    called = statement_in(METHOD, CALLS)(text, pick).encode()
    after = called.replace(IMPORT, IMPORT + b", warmup_v1_slot_mapping_kernel")
    ran = trace.faults(before, after)
    note(after.decode())
    note(str(ran))
    read = oracle.worker_faults({**FIXED, WORKER: before}, {**FIXED, WORKER: after})
    assert read or not ran


@pytest.mark.parametrize("body", ["pass", "self.fork.note()", "break", "continue"])
def test_a_loop_that_never_ends_is_judged_all_the_same(body: str) -> None:
    source = (
        f"class Worker:\n    def {trace.METHOD}(self):\n        while True:\n            {body}\n"
    )
    ran = trace.run(source.encode(), trace.Settings(*[False] * len(trace.FLAGS)))
    assert ran is not None
    assert ran[-1] == ("returned" if body == "break" else "raised Endless")
