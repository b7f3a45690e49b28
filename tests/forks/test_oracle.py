"""The judge must accept right rewrites and name what is wrong with wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.forks import oracle, trace, trees
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER

Files = dict[str, bytes]

FUNCTION = b'''

@torch.inference_mode()
def warmup_v1_slot_mapping_kernel(model_runner: Any) -> None:
    """Compile what the first request would."""
    tables = model_runner.input_batch.block_table
    if any(table.num_blocks_per_row.any() for table in tables.block_tables):
        return
    starts = torch.tensor([0, 1], dtype=torch.int32, device=model_runner.device)
    positions = torch.zeros(1, dtype=torch.int64, device=model_runner.device)
    try:
        tables.add_row(tuple([1] for _ in tables.block_tables), 0)
        tables.commit_block_table(1)
        tables.compute_slot_mapping(1, starts, positions)
    finally:
        tables.clear_row(0)
        tables.commit_block_table(1)
'''
CALL = b"""
        if not self.use_v2_model_runner:
            warmup_v1_slot_mapping_kernel(self.model_runner)
"""
SEED = b"\n        # No request sees the random state"
IMPORT = b"from .gpu.warmup import warmup_kernels"


def put(files: Files, path: str, old: bytes, new: bytes) -> Files:
    assert files[path].count(old) == 1, (path, old)
    return {**files, path: files[path].replace(old, new)}


def rewritten(before: Files) -> Files:
    """The right result for a tree with a bare decorator and the base's worker, made by hand."""
    after = put(
        before, BLOCK_TABLE, b"@triton.jit\n", b'@triton.jit(do_not_specialize=["num_tokens"])\n'
    )
    after[WARMUP] += FUNCTION
    after = put(after, WORKER, IMPORT, IMPORT + b", warmup_v1_slot_mapping_kernel")
    return put(after, WORKER, SEED, CALL + SEED)


BEFORE = trees.fork("00-monitor-in-triton-utils").tree.inside
AFTER = rewritten(BEFORE)

SAME_SHAPE = [
    "00-no-monitor",
    "00-monitor-in-triton-utils",
    "02-native-op",
    "03-runner-method",
    "05-engine-started-before-call",
    "05-engine-started-before-monitor",
    "06-seed-commented-out",
    "07-else-with-if",
    "07-extra-elif",
    "07-nested-if-in-v2-arm",
    "07-no-v2-arm",
    "08-earlier-if-on-the-flag",
    "09-early-return",
    "09-return-after-the-branch",
    "11-renamed-constexprs",
    "13-monitor-at-the-top",
    "13-monitor-from-elsewhere",
    "15-rows-marked-dirty",
    "20-early-return-extra-elif-earlier-if",
]
HINTS = oracle.Hints(frozenset({"watching.begin"}))


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_a_right_rewrite_has_no_fault(name: str) -> None:
    seed = b"\n        # No request sees the random state"
    before = trees.fork(name).tree.inside
    assert seed in before[WORKER]
    assert oracle.faults(before, rewritten(before), hints=HINTS) == []


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_a_tree_without_the_fix_is_not_called_fixed(name: str) -> None:
    assert oracle.state_faults(trees.fork(name).tree.inside, hints=HINTS)


def test_our_function_in_an_else_arm_counts_as_the_fix() -> None:
    assert oracle.state_faults(trees.fork("03-fix-in-place").tree.inside) == []


def moved_call(to: bytes, indent: int = 0) -> Files:
    call = CALL.replace(b"\n    ", b"\n" + b" " * (4 + indent))
    return put(put(AFTER, WORKER, CALL, b""), WORKER, to, call + to)


def in_worker(old: bytes, new: bytes) -> Files:
    return put(AFTER, WORKER, old, new)


def in_warmup(old: bytes, new: bytes) -> Files:
    after = FUNCTION.replace(old, new)
    assert after != FUNCTION
    return {**BEFORE, **AFTER, WARMUP: BEFORE[WARMUP] + after}


PLAIN_CALL = b"            warmup_v1_slot_mapping_kernel(self.model_runner)\n"
WRONG: dict[str, tuple[Callable[[], Files], str]] = {
    "nothing done": (lambda: dict(BEFORE), "specialises num_tokens"),
    "no call": (lambda: put(AFTER, WORKER, CALL, b""), "before the call"),
    "call after the monitor": (
        lambda: moved_call(b"\n        return CompilationTimes("),
        "the monitor is active",
    ),
    "call in the last rank's arm": (
        lambda: put(
            put(AFTER, WORKER, CALL, b""),
            WORKER,
            b"            # Only the last rank samples",
            PLAIN_CALL + b"            # Only the last rank samples",
        ),
        "before the call",
    ),
    "call for models that are not pooling": (
        lambda: put(
            put(AFTER, WORKER, CALL, b""),
            WORKER,
            b"_dummy_sampler_run(hidden_states=last)\n",
            b"_dummy_sampler_run(hidden_states=last)\n    " + PLAIN_CALL,
        ),
        "before the call",
    ),
    "call in the V2 arm": (
        lambda: put(
            put(AFTER, WORKER, CALL, b""),
            WORKER,
            b"            # The second runner",
            PLAIN_CALL + b"            # The second runner",
        ),
        "V2",
    ),
    "call without the guard": (
        lambda: in_worker(CALL, PLAIN_CALL.replace(b"            ", b"        ", 1)),
        "V2",
    ),
    "call before the branch": (
        lambda: moved_call(b"\n        if self.use_v2_model_runner:\n            # The"),
        "before the sampler's dummy run",
    ),
    "call under a condition": (
        lambda: in_worker(b"if not self.use_v2_model_runner:", b"if not self.model_config.seed:"),
        "before the call",
    ),
    "two calls": (lambda: in_worker(PLAIN_CALL, PLAIN_CALL * 2), "twice"),
    "call in a nested function": (
        lambda: in_worker(CALL, CALL.replace(b"if not self.use_v2_model_runner", b"def later()")),
        "before the call",
    ),
    "no import": (lambda: in_worker(b", warmup_v1_slot_mapping_kernel\n", b"\n"), "not imported"),
    "import from elsewhere": (
        lambda: in_worker(
            IMPORT + b", warmup_v1_slot_mapping_kernel\n",
            IMPORT + b"\nfrom .utils import warmup_v1_slot_mapping_kernel\n",
        ),
        "not imported",
    ),
    "import for the type checker alone": (
        lambda: in_worker(
            IMPORT + b", warmup_v1_slot_mapping_kernel\n",
            IMPORT
            + b"\nif TYPE_CHECKING:\n    from .gpu.warmup import warmup_v1_slot_mapping_kernel\n",
        ),
        "not imported",
    ),
    "seed lost": (
        lambda: in_worker(b"        set_random_seed(self.model_config.seed)\n", b""),
        "more than the import",
    ),
    "comment lost": (
        lambda: in_worker(b"            # Only the last rank samples, so only", b"            #"),
        "went or changed",
    ),
    "space lost": (lambda: in_worker(b"kernel_warmup(self)\n\n", b"kernel_warmup(self)\n"), "went"),
    "line end changed": (lambda: in_worker(CALL, CALL.replace(b"\n", b"\r\n")), "line end"),
    "last line end lost": (lambda: {**AFTER, WORKER: AFTER[WORKER][:-1]}, "last line"),
    "decorator of another kernel": (
        lambda: put(
            AFTER,
            BLOCK_TABLE,
            b'@triton.jit(do_not_specialize=["num_tokens"])\n',
            b'@triton.jit(do_not_specialize=["num_token"])\n',
        ),
        "specialises num_tokens",
    ),
    "decorator lists more": (
        lambda: put(AFTER, BLOCK_TABLE, b'["num_tokens"]', b'["num_tokens", "block_size"]'),
        "lists",
    ),
    "decorator gets an option": (
        lambda: put(AFTER, BLOCK_TABLE, b'["num_tokens"])', b'["num_tokens"], debug=True)'),
        "more than",
    ),
    "kernel's body changed": (
        lambda: put(AFTER, BLOCK_TABLE, b"at % block_size", b"at % table_stride"),
        "more than",
    ),
    "kernel moved down a line": (
        lambda: put(AFTER, BLOCK_TABLE, b"PAD_SLOT_ID = -1\n", b"PAD_SLOT_ID = -1\n\n"),
        "another line",
    ),
    "another file changed": (
        lambda: {**AFTER, "config.py": AFTER["config.py"] + b"\n"},
        "config.py was changed",
    ),
    "a file more": (lambda: {**AFTER, "new.py": b""}, "came or went"),
    "does not compile": (lambda: in_worker(b"kernel_warmup(self)", b"kernel_warmup(self"), "comp"),
    "no function": (lambda: {**AFTER, WARMUP: BEFORE[WARMUP]}, "0 definitions"),
    "two functions": (lambda: {**AFTER, WARMUP: AFTER[WARMUP] + FUNCTION}, "2 definitions"),
    "no inference mode": (lambda: in_warmup(b"@torch.inference_mode()\n", b""), "inference_mode"),
    "rows not given back": (lambda: in_warmup(b"        tables.clear_row(0)\n", b""), "finally"),
    "rows committed before they are cleared": (
        lambda: in_warmup(
            b"        tables.clear_row(0)\n        tables.commit_block_table(1)\n",
            b"        tables.commit_block_table(1)\n        tables.clear_row(0)\n",
        ),
        "before they are cleared",
    ),
    "no finally": (lambda: in_warmup(b"finally:", b"except KeyError:"), "try"),
    "live rows not looked for": (
        lambda: in_warmup(b"table.num_blocks_per_row.any()", b"False"),
        "in use",
    ),
    "int32 positions": (lambda: in_warmup(b"torch.int64", b"torch.int32"), "dtypes"),
    "a name that is not bound": (
        lambda: in_warmup(b"torch.zeros(1, dtype", b"np.zeros(1, dtype"),
        "np is not bound",
    ),
    "a call that the tables do not take": (
        lambda: in_warmup(
            b"compute_slot_mapping(1, starts, positions)",
            b"compute_slot_mapping(1, 1, starts, positions)",
        ),
        "does not take",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rewrite_is_named(name: str) -> None:
    make, expected = WRONG[name]
    found = oracle.faults(BEFORE, make())
    assert any(expected in fault for fault in found), found


def test_no_place_after_a_branch_that_returns_is_right() -> None:
    before = trees.fork("09-return-inside-the-branch").tree.inside
    assert oracle.faults(before, rewritten(before)) == ["a V1 path ends without the call"]


@pytest.mark.parametrize(
    ("opening", "closing", "right"),
    [
        (b"with torch.inference_mode():", b"", True),
        (b"try:", b"        finally:\n            self.model_runner.capture_model()\n", True),
        (b"try:", b"        except MemoryError:\n            raise\n", True),
        (b"try:", b"        except MemoryError:\n            pass\n", False),
        (b"with contextlib.suppress(MemoryError):", b"", False),
        (b"for _ in range(1):", b"", False),
        (b"if self.model_config.seed:", b"", False),
        (b"if True:", b"", True),
        (b"while True:", b"            break\n", True),
    ],
)
def test_what_the_branch_and_the_call_are_wrapped_in_counts(
    opening: bytes, closing: bytes, right: bool
) -> None:
    text = AFTER[WORKER]
    start = text.index(b"        if self.use_v2_model_runner:\n")
    end = text.index(SEED)
    inner = b"".join(b"    " + line for line in text[start:end].splitlines(keepends=True))
    wrapped = text[:start] + b"        " + opening + b"\n" + inner + closing + text[end:]
    found = oracle.worker_faults(BEFORE, {**AFTER, WORKER: wrapped})
    found = [fault for fault in found if "more than the import" not in fault]
    assert (found == []) is right, found


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_running_a_right_worker_shows_no_fault(name: str) -> None:
    before = trees.fork(name).tree.inside
    ran = trace.faults(before[WORKER], rewritten(before)[WORKER], HINTS.monitors)
    assert ran == ()


@pytest.mark.parametrize(
    "name", [name for name in WRONG if name.startswith(("call", "two calls", "no call"))]
)
def test_running_a_wrong_worker_shows_it_too(name: str) -> None:
    assert trace.faults(BEFORE[WORKER], WRONG[name][0]()[WORKER])


def test_our_call_counts_in_whatever_arm_it_stands() -> None:
    make, _ = WRONG["call in the last rank's arm"]
    assert oracle.state_faults(make()) == []


@pytest.mark.parametrize("name", ["call after the monitor", "call in the V2 arm", "no call"])
def test_a_call_that_is_never_made_in_time_does_not_count(name: str) -> None:
    make, _ = WRONG[name]
    assert oracle.state_faults(make())


BRANCH = b"        if self.use_v2_model_runner:\n            # The second"
LOCAL = b"        v2 = self.%s\n%s        if v2:\n            # The second"


@pytest.mark.parametrize("flag", [b"use_v2_model_runner", b"use_v2"])
@pytest.mark.parametrize(("more", "right"), [(b"", True), (b"        v2 = v2 or self.x\n", False)])
def test_a_local_name_of_the_flag_is_read_as_long_as_it_is_bound_once(
    flag: bytes, more: bytes, right: bool
) -> None:
    def named(files: Files) -> Files:
        changed = put(files, WORKER, BRANCH, LOCAL % (flag, more))
        worker = changed[WORKER].replace(
            b"            warmup_kernels(", b"            return warmup_kernels("
        )
        return {**changed, WORKER: worker.replace(b"use_v2_model_runner", flag)}

    found = oracle.faults(named(BEFORE), named(AFTER), "vllm")
    assert ("a V1 path ends without the call" not in found) == right
    assert right == (not found)
