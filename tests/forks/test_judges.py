"""The judges name what is wrong with a wrong rewrite, and find nothing in a right one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from tests.forks import running, text, trace, trees
from tests.forks.judged import Judged, judged
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, Tree

IMPORT = "from .gpu.warmup import warmup_kernels"
CALL = "            warmup_v1_slot_mapping_kernel(self.model_runner)\n"
GUARDED = (
    "        if not self.use_v2_model_runner:\n"
    "            # V1: compile the slot mapping kernel before the first request.\n" + CALL + "\n"
)
LISTED = '["num_tokens"]'
CLEARED = "        block_tables.clear_row(0)\n        block_tables.commit_block_table(1)\n"
LAUNCH = "compute_slot_mapping(1, query_start_loc, positions)\n"


@cache
def right() -> Judged:
    return judged(trees.fork("00-monitor-in-triton-utils").tree)


@dataclass(frozen=True)
class Wrong:
    """`old` becomes `new` in one file of the right rewrite, and what a judge says of that."""

    file: str
    old: str
    new: str
    said: str

    @property
    def tree(self) -> Tree:
        found = right().after.inside[self.file].decode()
        assert found.count(self.old) >= 1, self.old
        return right().after.edited(self.file, found.replace(self.old, self.new, 1).encode())


RUN = {
    "no call": Wrong(WORKER, GUARDED, "", "not launched"),
    "a call after the monitor": Wrong(
        WORKER,
        "        return CompilationTimes(",
        GUARDED + "        return CompilationTimes(",
        "!",
    ),
    "a call for V2 too": Wrong(WORKER, GUARDED, CALL.replace("    ", "", 1), "V2 launches"),
    "a call for V2 alone": Wrong(WORKER, "if not self.use", "if self.use", "V2 launches"),
    "a call under a setting": Wrong(
        WORKER, "if not self.use_v2_model_runner:", "if self.model_config.enforce_eager:", "V2"
    ),
    "a name that is not imported": Wrong(
        WORKER, f"{IMPORT}, warmup_v1_slot_mapping_kernel\n", f"{IMPORT}\n", "NameError"
    ),
    "an import that does not resolve": Wrong(
        WORKER, f"{IMPORT}, ", f"{IMPORT}, no_such_name, ", "no longer runs"
    ),
    "another parameter in the list": Wrong(BLOCK_TABLE, LISTED, '["block_size"]', "specialises"),
    "no list": Wrong(BLOCK_TABLE, f"(do_not_specialize={LISTED})", "", "specialises"),
    "the kernel's result": Wrong(BLOCK_TABLE, "at % block_size", "at % table_stride", "slots"),
    "no launch": Wrong(
        WARMUP, "        return\n\n    # Same", "        return\n    return\n    # Same", "not l"
    ),
    "a name of the warm-up that is not bound": Wrong(
        WARMUP, "torch.zeros(1", "np.zeros(1", "NameE"
    ),
    "row 0 not cleared": Wrong(WARMUP, CLEARED, "        pass\n", "left in use"),
    "row 0 cleared on the host alone": Wrong(
        WARMUP, CLEARED, CLEARED.splitlines(keepends=True)[0], "left in use"
    ),
    "live rows not looked for": Wrong(WARMUP, "row.any() for", "row.all() for", "in use are ch"),
}
BYTES = {
    "a line of the worker lost": Wrong(
        WORKER, "        set_random_seed(self.model_config.seed)\n", "", "lost"
    ),
    "a comment lost": Wrong(WORKER, "# Only the last rank", "#", "not ours"),
    "a line end changed": Wrong(WORKER, CALL, CALL.replace("\n", "\r\n"), "line end"),
    "a BOM": Wrong(WORKER, '"""One', '\ufeff"""One', "BOM"),
    "the last line's end lost": Wrong(
        WARMUP, "\n    block_tables." + LAUNCH, "\n    block_tables." + LAUNCH[:-1], "last"
    ),
    "no Python": Wrong(WORKER, "kernel_warmup(self)", "kernel_warmup(self", "does not compile"),
}
TRACED = ("no call", "a call for V2 too", "a call for V2 alone", "a call under a setting")


@pytest.mark.parametrize("name", RUN)
def test_running_a_wrong_tree_shows_what_is_wrong(name: str) -> None:
    found = running.faults(right().before, RUN[name].tree)
    assert any(RUN[name].said in fault for fault in found), found


@pytest.mark.parametrize("name", BYTES)
def test_wrong_bytes_are_named(name: str) -> None:
    found = text.faults(right().before.files, BYTES[name].tree.files)
    assert any(BYTES[name].said in fault for fault in found), found


@pytest.mark.parametrize("name", TRACED)
def test_running_the_worker_alone_shows_a_wrong_call(name: str) -> None:
    assert trace.faults(right().before.inside[WORKER], RUN[name].tree.inside[WORKER])


def test_a_right_rewrite_has_no_fault() -> None:
    assert right().faults == ()
    assert running.fixed_faults(right().after) == []


def test_a_tree_without_the_fix_is_neither_fixed_nor_to_be_left_alone() -> None:
    assert running.fixed_faults(right().before)
    assert running.dismissed_faults(right().before)


def test_a_tree_that_cannot_run_is_not_judged_by_running() -> None:
    broken = right().before.edited(WORKER, b"import no_such_module\n")
    assert running.record(broken).error
    assert running.faults(broken, right().after) == []


def test_a_tree_that_never_ends_is_stopped() -> None:
    endless = right().before.edited(WORKER, b"while True:\n    pass\n")
    assert "EndlessError" in running.record(endless).error


@pytest.mark.parametrize("body", ["pass", "self.fork.note()", "break", "continue"])
def test_a_loop_that_never_ends_is_traced_all_the_same(body: str) -> None:
    source = (
        f"class Worker:\n    def {trace.METHOD}(self):\n        while True:\n            {body}\n"
    )
    ran = trace.run(source.encode(), trace.Settings(*[False] * len(trace.FLAGS)))
    assert ran is not None
    assert ran[-1] == ("returned" if body == "break" else "raised Endless")
