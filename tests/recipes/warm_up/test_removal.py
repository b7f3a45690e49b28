"""Our own text in a tree that upstream has fixed: taken out to the letter, or left and said."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Reason, Status, Verdict
from codemods.engine.planning import make_plan
from codemods.engine.sources import Edited, SourceFile, Sources
from codemods.recipes.kv_block_zeroing.edits import unit_tests as zeroing_tests
from codemods.recipes.kv_block_zeroing.edits import warmup as zeroing
from codemods.recipes.kv_block_zeroing.facts import past_texts as zeroing_past
from codemods.recipes.slot_mapping.edits import unit_tests as slot_tests
from codemods.recipes.slot_mapping.edits import warmup as slots
from codemods.recipes.slot_mapping.facts import past_texts as slots_past
from codemods.recipes.warm_up import warmup_edit, worker_edit
from codemods.release.names import Source
from codemods.write import write
from tests.forks import trees
from tests.output.test_schema import validate
from tests.recipes.kv_block_zeroing import forks
from tests.releases.trees import run, tree_of

Files = dict[str, bytes]

TESTS = "tests/v1/worker/test_gpu_model_runner.py"
WARMUP = f"vllm/{trees.WARMUP}"
WORKER = f"vllm/{trees.WORKER}"
UTILS = "vllm/v1/worker/utils.py"
EDITS = {"warmup": WARMUP, "worker": WORKER, "unit-tests": TESTS}
RECIPES = ("slot-mapping", "kv-block-zeroing")
PAST = {"slot-mapping": slots_past.PAST, "kv-block-zeroing": zeroing_past.PAST}
FORM = {
    "slot-mapping": slots.form(False, clears=True, marks=False),
    "kv-block-zeroing": zeroing.function_text(["_kv_block_zeroer", "kv_block_zeroer"]),
}
REMOVED = (Status.EDIT, Reason.REMOVED)
LEFT = (Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM)


@cache
def upstream() -> Files:
    """A tree in which upstream has fixed what both recipes fix."""
    table = f"vllm/{trees.BLOCK_TABLE}"
    return {
        **forks.fork("01-count-in-the-grid").files,
        table: trees.fork("00-kernel-class").tree.files[table],
        TESTS: b"import pytest\n\n\ndef test_something():\n    assert pytest\n",
    }


def with_fix(files: Files, recipe: str) -> Files:
    """The tree with our fix put in by hand, as a rebase leaves it."""
    call, with_function = PAST[recipe].call, dict(files)
    added = warmup_edit.add(SourceFile(WARMUP, files[WARMUP]), call.function, FORM[recipe], "")
    with_function[WARMUP] = bytes_of(added)
    with tempfile.TemporaryDirectory() as folder:
        sources = Sources(Checkout.find(forks.write(with_function, Path(folder))))
        called = worker_edit.edit(SourceFile(WORKER, files[WORKER]), call, sources)
    tests = SourceFile(TESTS, files[TESTS])
    if recipe == "slot-mapping":
        kernels = [("v1.worker.block_table", "_compute_slot_mapping_kernel")]
        tested = slot_tests.edit(tests, "vllm", kernels, warmup=True)
    else:
        kernel = ("v1.worker.utils", "_zero_kv_blocks_kernel")
        tested = zeroing_tests.edit(tests, "vllm", kernel, ["kv_block_zeroer"])
    return {**with_function, WORKER: bytes_of(called), TESTS: bytes_of(tested)}


def bytes_of(edited: Edited) -> bytes:
    assert edited.module is not None
    return edited.module.bytes


@cache
def fixed(recipe: str) -> Files:
    return with_fix(upstream(), recipe)


def plan(files: Files, recipe: str = "slot-mapping", skip: str = "") -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout.find(forks.write(files, Path(folder)))
        return make_plan(checkout, registry.chosen([recipe]), skip=frozenset(filter(None, [skip])))


def statuses(found: Plan) -> dict[str, tuple[Status, Reason]]:
    return {one.edit: (one.status, one.reason) for one in found.outcomes}


def rewritten(files: Files, recipe: str) -> Files:
    """The tree as apply leaves it; a second run changes nothing."""
    found = plan(files, recipe)
    assert found.verdict is Verdict.SUPERSEDED
    after = forks.rewritten(files, found)
    assert plan(after, recipe).changes == ()
    return after


# Taken out, byte for byte


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_is_left_of_the_edits_goes(recipe: str, count: int) -> None:
    for names in combinations(EDITS, count):
        changed = {EDITS[name]: fixed(recipe)[EDITS[name]] for name in names}
        files = {**upstream(), **changed}
        found = plan(files, recipe)
        assert {name for name, one in statuses(found).items() if one == REMOVED} == {*names}
        assert forks.rewritten(files, found) == upstream()
        assert found.carried_out().verdict is Verdict.SUPERSEDED


SHAPES: Mapping[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "tabs": lambda data: data.replace(b"    ", b"\t"),
    "no last line end": lambda data: data.rstrip(),
    "comment at the end": lambda data: data + b"\n# The end.\n",
    "no Any": lambda data: data.replace(b"from typing import Any\n", b"").replace(b"Any", b"int"),
    "nothing of the standard library": lambda data: re.sub(
        rb"from (?:collections.abc|typing) .*\n", b"", data
    ).replace(b"Any", b"int"),
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "import in parentheses": lambda data: data.replace(
        b"import warmup_kernels", b"import (\n    warmup_kernels,  # V2\n)"
    ),
    "import of an alias": lambda data: data.replace(
        b"import warmup_kernels", b"import warmup_kernels as warmup_kernels"
    ),
    "no import at the top": lambda data: re.sub(rb"from \.gpu\.warmup.*\n", b"", data),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bytes_around_it_stay(shape: str) -> None:
    change = SHAPES[shape]
    was = {
        name: change(data) if name in EDITS.values() else data for name, data in upstream().items()
    }
    before = with_fix(was, "slot-mapping")
    assert all(before[name] != was[name] for name in EDITS.values())
    assert rewritten(before, "slot-mapping") == was


def test_both_recipes_take_out_their_own_in_either_order_and_at_once() -> None:
    one, other = RECIPES
    both = with_fix(fixed(one), other)
    assert rewritten(both, other) == fixed(one)
    assert rewritten(rewritten(both, one), other) == rewritten(both, "all") == upstream()


def test_what_a_fork_put_behind_it_stays_where_it_is() -> None:
    more = b"\n\n# Ours.\ndef of_the_fork():\n    pass\n"
    longer = {name: fixed("slot-mapping")[name] + more for name in (WARMUP, TESTS)}
    after = rewritten({**fixed("slot-mapping"), **longer}, "slot-mapping")
    assert after == {**upstream(), **{name: upstream()[name] + more for name in longer}}


def test_a_real_release_comes_out_as_it_went_in() -> None:
    tree = tree_of("0.29.0", Source.WHEEL)
    names = [path.relative_to(tree).as_posix() for path in tree.rglob("*.py")]
    files = {name: (tree / name).read_bytes() for name in names} | {TESTS: upstream()[TESTS]}
    both = with_fix(with_fix(files, RECIPES[0]), RECIPES[1])
    assert forks.rewritten(both, plan(both, "all")) == files


def test_a_tree_without_the_v1_runner_has_no_use_for_it_either() -> None:
    gone = {"vllm/v1/worker/gpu_model_runner.py", f"vllm/{trees.BLOCK_TABLE}"}
    files = {name: data for name, data in fixed("slot-mapping").items() if name not in gone}
    after = forks.rewritten(files, plan(files))
    assert after == {name: data for name, data in upstream().items() if name not in gone}
    assert plan(after).verdict is Verdict.NOT_AFFECTED


@pytest.mark.parametrize(
    ("was", "ours"),
    [
        ("@triton.jit", '@triton.jit(do_not_specialize=["n_blocks"])'),
        ("@triton.jit(debug=True)", '@triton.jit(debug=True, do_not_specialize=["n_blocks"])'),
        (
            '@triton.jit(do_not_specialize=["stride"])',
            '@triton.jit(do_not_specialize=["stride", "n_blocks"])',
        ),
    ],
)
def test_what_the_kernel_does_not_take_leaves_its_decorator(was: str, ours: str) -> None:
    before, after = (
        {**upstream(), UTILS: upstream()[UTILS].replace(b"@triton.jit", text.encode())}
        for text in (was, ours)
    )
    assert rewritten(after, "kv-block-zeroing") == before
    assert statuses(plan(after, "kv-block-zeroing"))["kernel"] == REMOVED


def test_every_command_takes_it_for_a_change(tmp_path: Path) -> None:
    root = forks.write(fixed("slot-mapping"), tmp_path)
    assert run("check", root).code == 1
    patch = run("diff", root).stdout.decode()
    assert not re.search(r"^\+(?!\+|from \.gpu\.warmup import)", patch, re.MULTILINE)
    verified, applied = (run(verb, root, "--json") for verb in ("verify", "apply"))
    for printed in (verified, applied):
        validate(printed.stdout)
        assert (printed.code, printed.json["verdict"]) == (0, "superseded")
    assert {one["proof"] for one in verified.json["proofs"]} == {"syntax", "imports", "lint"}
    assert {name: (root / name).read_bytes() for name in upstream()} == upstream()
    assert run("check", root).code == 0


def test_the_tree_works_between_the_writes(tmp_path: Path) -> None:
    files = with_fix(fixed("slot-mapping"), "kv-block-zeroing")
    changes = sorted(plan(files, "all").changes, key=lambda change: change.rank)
    assert [change.path for change in changes] == [WORKER, TESTS, WARMUP]
    write(forks.write(files, tmp_path), changes)


# Left, and said


CHANGES = {
    "the function": (WARMUP, b"# Block 1: block 0 is the null block.", b"# Block 0 is never used."),
    "its signature": (WARMUP, b"(model_runner: Any) -> None", b"(model_runner) -> None"),
    "a comment above it": (
        WARMUP,
        b"@torch.inference_mode()\ndef warmup_v1",
        b"# Ours.\n@torch.inference_mode()\ndef warmup_v1",
    ),
    "the call": (WORKER, b"# V1: compile", b"# V1, compile"),
    "its guard": (WORKER, b"if not self.use_v2_model_runner:", b"if not self.is_v2():"),
    "an arm more": (
        WORKER,
        b"_kernel(self.model_runner)\n",
        b"_kernel(self.model_runner)\n        else:\n            pass\n",
    ),
    "another call": (
        WORKER,
        b"    def execute_model(",
        b"    again = warmup_v1_slot_mapping_kernel\n\n    def execute_model(",
    ),
    "a test": (TESTS, b"assert not tables.method_calls", b"assert tables.method_calls == []"),
    "a test of its own": (
        TESTS,
        b"def test_something",
        b"def test_more():\n    assert 'warmup_v1_slot_mapping_kernel'\n\n\ndef test_something",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_fork_changed_is_left_with_what_belongs_to_it(what: str) -> None:
    name, old, new = CHANGES[what]
    files = fixed("slot-mapping")
    assert files[name].count(old) == 1
    found = plan({**files, name: files[name].replace(old, new)})
    assert (found.verdict, found.changes) == (Verdict.SUPERSEDED, ())
    assert set(statuses(found).values()) == {LEFT}
    by_hand = [one for one in found.outcomes if one.detail.endswith("so take it out by hand")]
    assert [(one.file, bool(one.line)) for one in by_hand] == [(name, True)]
    kept = [one for one in found.outcomes if re.search(r"is left, for .* is not as", one.detail)]
    assert len(kept) == 2


def test_what_another_file_uses_is_left_and_said() -> None:
    files = fixed("slot-mapping")
    other = "vllm/model_executor/warmup/ours.py"
    text = b"from vllm.v1.worker.gpu.warmup import warmup_v1_slot_mapping_kernel\n"
    found = plan({**files, other: text})
    assert (found.verdict, found.changes) == (Verdict.SUPERSEDED, ())
    why = f"is left, for {other} names warmup_v1_slot_mapping_kernel"
    assert sum(one.detail.endswith(why) for one in found.outcomes) == 3


def test_a_line_added_to_the_function_leaves_it() -> None:
    files = fixed("slot-mapping")
    found = plan({**files, WARMUP: files[WARMUP] + b"\n    print()\n"})
    assert found.changes == ()


@pytest.mark.parametrize(
    ("skip", "left"),
    [("worker", "worker warmup"), ("unit-tests", "unit-tests warmup"), ("warmup", "warmup")],
)
def test_nothing_is_taken_from_under_what_is_skipped(skip: str, left: str) -> None:
    found = plan(fixed("slot-mapping"), skip=skip)
    gone = {one.edit for one in found.outcomes if one.reason is Reason.REMOVED}
    assert gone == {*EDITS} - {*left.split()}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_superseded_tree_without_our_text_needs_nothing(recipe: str) -> None:
    found = plan(upstream(), recipe)
    assert set(statuses(found).values()) == {LEFT}
    assert {one.detail for one in found.outcomes} == {found.recipes[0].why}


@pytest.mark.parametrize(
    "decorator",
    [
        '@triton.jit(do_not_specialize=[\n    "n_blocks",\n])',
        '@triton.jit(do_not_specialize=("stride", "n_blocks"))',
    ],
)
def test_an_argument_written_otherwise_is_left_and_said(decorator: str) -> None:
    data = upstream()[UTILS].replace(b"@triton.jit", decorator.encode())
    found = plan({**upstream(), UTILS: data}, "kv-block-zeroing")
    assert (found.verdict, found.changes) == (Verdict.SUPERSEDED, ())
    assert found.outcomes[0].detail.endswith("so take it out by hand")


def test_upstream_s_own_argument_stays() -> None:
    files = {**upstream(), **forks.fork("01-upstream").files}
    assert plan(files, "kv-block-zeroing").changes == ()


def test_what_cannot_be_read_holds_nothing_of_ours(tmp_path: Path) -> None:
    root = forks.write(fixed("slot-mapping"), tmp_path)
    (root / WARMUP).unlink()
    (root / WARMUP).symlink_to("/nowhere")
    found = make_plan(Checkout.find(root), registry.chosen(()))
    assert found.verdict is Verdict.SUPERSEDED


@pytest.mark.parametrize(
    ("recipe", "fork"),
    [("slot-mapping", "00-monitor-in-utils"), ("kv-block-zeroing", "00-both-runners")],
)
def test_a_tree_with_the_bug_keeps_the_fix(recipe: str, fork: str) -> None:
    files = trees.fork(fork).tree.files if "monitor" in fork else forks.fork(fork).files
    after = forks.rewritten(dict(files), plan(dict(files), recipe))
    assert after != files
    assert plan(after, recipe).changes == ()
