"""Our own text in a tree that upstream has fixed: taken out to the letter, or left and said."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Outcome, Plan, Reason, Status, Verdict
from codemods.engine.planning import make_plan

from codemods.transforms.source import compiles
from codemods.write import write
from tests.forks import trees
from tests.recipes.kv_block_zeroing import forks as kv_forks

Files = Mapping[str, bytes]

LEFTOVERS = Path(__file__).parents[3] / "fixtures" / "leftovers"
TESTS = "tests/v1/worker/test_gpu_model_runner.py"
WARMUP = f"vllm/{trees.WARMUP}"
WORKER = f"vllm/{trees.WORKER}"
TABLE = f"vllm/{trees.BLOCK_TABLE}"
FUNCTION = "warmup_v1_slot_mapping_kernel"
TEST_MODULE = b"import pytest\n\n\ndef test_something():\n    assert pytest\n"

# The fix of one tree in another one, in which upstream has fixed the kernel in its own way.
FIXABLE = {"slot-mapping": "00-monitor-in-utils", "kv-block-zeroing": "00-both-runners"}


def plan(root: Path, files: Files, recipe: str = "slot-mapping", **options: object) -> Plan:
    kv_forks.write(files, root)
    return make_plan(Checkout.find(root), registry.chosen([recipe]), **options)  # type: ignore[arg-type]


def applied(root: Path, files: Files, recipe: str = "slot-mapping") -> dict[str, bytes]:
    """What the tool makes of a tree, on the disk, in the order in which it writes."""
    found = plan(root, files, recipe)
    write(root, sorted(found.changes, key=lambda change: change.rank))
    return {name: (root / name).read_bytes() for name in files}


def before(fork: str) -> dict[str, bytes]:
    return {**trees.fork(fork).tree.files, TESTS: TEST_MODULE}


def superseded(files: Files) -> dict[str, bytes]:
    """The tree with upstream's kernel class, as after a rebase."""
    return {**files, TABLE: trees.fork("00-kernel-class").tree.files[TABLE]}


def outcomes(found: Plan) -> dict[str, Outcome]:
    return {one.edit: one for one in found.outcomes}


REMOVED = (Status.EDIT, Reason.REMOVED)
LEFT = (Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM)


def statuses(found: Plan) -> dict[str, tuple[Status, Reason]]:
    return {edit: (one.status, one.reason) for edit, one in outcomes(found).items()}


# Taken out, byte for byte


SAME_TABLES = [
    name
    for name in trees.names()
    if trees.fork(name).expected["verdict"] == "fixable"
    and trees.fork(name).tree.package == "vllm"
    and name != "14-crlf"
]


@pytest.mark.parametrize("fork", SAME_TABLES)
def test_what_was_inserted_goes_to_the_letter(tmp_path: Path, fork: str) -> None:
    was = before(fork)
    fixed = applied(tmp_path / "fixed", was)
    rebased = superseded(fixed)
    found = plan(tmp_path / "rebased", rebased)
    assert found.verdict is Verdict.SUPERSEDED
    assert set(statuses(found).values()) <= {REMOVED, LEFT}
    assert {change.path for change in found.changes} == {
        name for name in was if rebased[name] != superseded(was)[name]
    }
    now = applied(tmp_path / "removed", rebased)
    assert now == superseded(was)
    assert plan(tmp_path / "again", now).changes == ()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda data: data.replace(b"    ", b"\t"), id="tabs"),
        pytest.param(lambda data: data.rstrip(), id="no last line end"),
        pytest.param(lambda data: data + b"\n# The end.\n", id="comment at the end"),
        pytest.param(lambda data: data.replace(b"from typing import Any\n", b""), id="no Any"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="BOM"),
    ],
)
def test_the_bytes_around_it_stay(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    was = before("00-monitor-in-triton-utils")
    was = {
        name: change(data) if name.startswith("vllm/v1/worker/g") else data
        for name, data in was.items()
    }
    assert all(compiles(data) for data in was.values())
    rebased = superseded(applied(tmp_path / "fixed", was))
    assert rebased[WARMUP] != was[WARMUP]
    assert applied(tmp_path / "removed", rebased) == superseded(was)


def test_what_a_fork_put_behind_it_stays_where_it_is(tmp_path: Path) -> None:
    fixed = superseded(applied(tmp_path / "fixed", before("00-monitor-in-utils")))
    more = b"\n\n# Ours.\ndef of_the_fork():\n    pass\n"
    fixed |= {WARMUP: fixed[WARMUP] + more, TESTS: fixed[TESTS] + more}
    now = applied(tmp_path / "removed", fixed)
    was = before("00-monitor-in-utils")
    assert (now[WARMUP], now[TESTS]) == (was[WARMUP] + more, was[TESTS] + more)


@pytest.mark.parametrize("warmup", ["warmup-0.1.0", "warmup-several-0.1.0"])
def test_the_text_of_an_older_version_goes_too(tmp_path: Path, warmup: str) -> None:
    was = superseded(before("00-monitor-in-utils"))
    fixed = superseded(applied(tmp_path / "fixed", before("00-monitor-in-utils")))
    for name, text in ((WARMUP, warmup), (TESTS, "tests-0.1.0")):
        fixed[name] = was[name] + b"\n\n" + (LEFTOVERS / f"{text}.txt").read_bytes()
    assert applied(tmp_path / "removed", fixed) == was


@pytest.mark.parametrize("recipes", [("slot-mapping",), ("kv-block-zeroing",), ("all",)])
def test_each_recipe_takes_out_its_own(tmp_path: Path, recipes: tuple[str, ...]) -> None:
    was = {**kv_forks.fork("00-both-runners").files, TESTS: TEST_MODULE}
    fixed = applied(tmp_path / "fixed", was, "all")
    assert b"zeroing" in fixed[WORKER]
    assert b"slot_mapping" in fixed[WORKER]
    upstream = kv_forks.fork("01-upstream").files
    rebased = superseded({**fixed, **_upstreams_own(upstream, was)})
    for recipe in recipes:
        rebased = applied(tmp_path / recipe, rebased, recipe)
    worker, warm = rebased[WORKER], rebased[WARMUP]
    assert (b"slot_mapping" in worker) == (recipes == ("kv-block-zeroing",))
    assert (b"block_zeroing" in worker) == (recipes == ("slot-mapping",))
    if recipes == ("all",):
        assert worker == was[WORKER]
        assert warm == _upstreams_own(upstream, was).get(WARMUP, was[WARMUP])
        assert rebased[TESTS] == was[TESTS]


def _upstreams_own(upstream: Files, was: Files) -> dict[str, bytes]:
    """The files that upstream's fix of the zeroer changed and ours did not."""
    return {
        name: data
        for name, data in upstream.items()
        if was.get(name) != data and name not in (WARMUP, WORKER)
    }


def test_check_asks_for_it_and_then_for_nothing(tmp_path: Path) -> None:
    rebased = superseded(applied(tmp_path / "fixed", before("00-monitor-in-utils")))
    found = plan(tmp_path / "rebased", rebased)
    assert statuses(found) == {
        "kernel": LEFT,
        "warmup": REMOVED,
        "worker": REMOVED,
        "unit-tests": REMOVED,
    }
    ranks = {change.path: change.rank for change in found.changes}
    assert ranks[WORKER] < ranks[TESTS] < ranks[WARMUP]
    assert outcomes(found)["worker"].detail == (
        f"the call of {FUNCTION} is taken out; upstream has its own fix"
    )
    assert found.carried_out().verdict is Verdict.SUPERSEDED


# Left, and said


CHANGES = {
    "the function": (WARMUP, b"# Block 0 is the null block.", b"# Block 0 is never used."),
    "its signature": (WARMUP, b"(model_runner: Any) -> None", b"(model_runner) -> None"),
    "a comment above it": (
        WARMUP,
        b"@torch.inference_mode()\ndef warmup_v1",
        b"# Ours.\n@torch.inference_mode()\ndef warmup_v1",
    ),
    "the call": (WORKER, b"# V1: compile", b"# V1, compile"),
    "its guard": (
        WORKER,
        b"if not self.use_v2_model_runner:\n",
        b"if self.on and not self.use_v2_model_runner:\n",
    ),
    "another call": (
        WORKER,
        b"    def execute_model",
        b"    def again(self):\n        warmup_v1_slot_mapping_kernel(self.model_runner)\n\n    def execute_model",
    ),
    "a test": (TESTS, b"assert not tables.method_calls", b"assert tables.method_calls == []"),
    "a test of its own": (
        TESTS,
        b"def test_something",
        b"def test_more():\n    assert 'warmup_v1_slot_mapping_kernel'\n\n\ndef test_something",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_fork_changed_is_left_with_what_belongs_to_it(tmp_path: Path, what: str) -> None:
    name, old, new = CHANGES[what]
    rebased = superseded(applied(tmp_path / "fixed", before("00-monitor-in-utils")))
    assert rebased[name].count(old) == 1
    rebased[name] = rebased[name].replace(old, new)
    found = plan(tmp_path / "rebased", rebased)
    assert found.verdict is Verdict.SUPERSEDED
    assert found.changes == ()
    told = [one for one in found.outcomes if "is not as this tool inserted it" in one.detail]
    assert [one.file for one in told] == [name]
    assert told[0].line is not None
    left = [one for one in found.outcomes if re.search("is left, for .* was changed$", one.detail)]
    assert len(left) == 2


@pytest.mark.parametrize(
    ("skip", "left"),
    [
        ("worker", {"worker", "warmup"}),
        ("unit-tests", {"unit-tests", "warmup"}),
        ("warmup", {"warmup"}),
    ],
)
def test_nothing_is_taken_from_under_what_is_skipped(
    tmp_path: Path, skip: str, left: set[str]
) -> None:
    rebased = superseded(applied(tmp_path / "fixed", before("00-monitor-in-utils")))
    found = plan(tmp_path / "rebased", rebased, skip=frozenset({skip}))
    gone = {one.edit for one in found.outcomes if one.reason is Reason.REMOVED}
    assert gone == {"warmup", "worker", "unit-tests"} - left


@pytest.mark.parametrize("recipe", ["slot-mapping", "kv-block-zeroing"])
def test_a_superseded_tree_without_our_text_needs_nothing(tmp_path: Path, recipe: str) -> None:
    files = superseded(kv_forks.fork("01-upstream").files)
    found = plan(tmp_path, files, recipe)
    assert set(statuses(found).values()) == {LEFT}
    assert {one.detail for one in found.outcomes} == {found.recipes[0].why}


def test_what_cannot_be_read_holds_nothing_of_ours(tmp_path: Path) -> None:
    kv_forks.write(superseded(before("00-monitor-in-utils")), tmp_path)
    (tmp_path / WARMUP).unlink()
    (tmp_path / WARMUP).symlink_to("/nowhere")
    found = make_plan(Checkout.find(tmp_path), registry.chosen(()))
    assert found.verdict is Verdict.SUPERSEDED


def test_a_tree_with_the_bug_keeps_the_fix(tmp_path: Path) -> None:
    fixed = applied(tmp_path / "fixed", before("00-monitor-in-utils"))
    assert plan(tmp_path / "again", fixed).changes == ()
