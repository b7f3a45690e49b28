"""What the edits come to together: what rests on what, and which edits a run leaves out."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason, RecipePlan, Status
from codemods.engine.planning import make_plan
from codemods.recipes.slot_mapping.recipe import RECIPE
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, Tree, fork

BASE = fork("00-monitor-in-triton-utils").tree
TESTS = "tests/v1/worker/test_gpu_model_runner.py"
EDITS = RECIPE.edits
ALL = frozenset(EDITS)
DERIVED = "import acme\nclass BlockTable(acme.Table):\n    def compute_slot_mapping(self):\n"
KERNEL, WARM, WORK, UNIT = EDITS


def run(root: Path, tree: Tree = BASE, wanted: frozenset[str] = ALL) -> RecipePlan:
    tree.write_to(root)
    (one,) = make_plan(Checkout.find(root), [RECIPE], only=wanted).recipes
    return one


def statuses(result: RecipePlan) -> dict[str, tuple[Status, Reason]]:
    return {one.edit: (one.status, one.reason) for one in result.outcomes}


def with_tests(tree: Tree = BASE) -> Tree:
    return tree.changed({TESTS: b"import pytest\n"})


def fixed(root: Path, tree: Tree = BASE) -> Tree:
    return tree.changed({change.path: change.after for change in run(root, tree).changes})


def test_the_edits_come_in_their_order(tmp_path: Path) -> None:
    assert [one.edit for one in run(tmp_path, with_tests()).outcomes] == list(EDITS)


def test_each_edit_changes_its_own_file(tmp_path: Path) -> None:
    found = {change.path: change.edits for change in run(tmp_path, with_tests()).changes}
    assert found == {
        TESTS: (UNIT,),
        f"vllm/{BLOCK_TABLE}": (KERNEL,),
        f"vllm/{WARMUP}": (WARM,),
        f"vllm/{WORKER}": (WORK,),
    }


OWN = b"""

@torch.inference_mode()
def warmup_v1_slot_mapping_kernel(model_runner):
    block_tables = model_runner.input_batch.block_table
    block_tables.commit_block_table(1)
    block_tables.clear_row(0)
"""


def test_a_function_is_replaced_whose_lines_come_again_at_another_indent(tmp_path: Path) -> None:
    tree = BASE.changed({f"vllm/{WARMUP}": BASE.inside[WARMUP] + OWN})
    tree.write_to(tmp_path)
    (one,) = make_plan(Checkout.find(tmp_path), [RECIPE], replace_known=True).recipes
    assert statuses(one)[WARM] == (Status.EDIT, Reason.REPLACED)


def test_no_call_is_made_of_a_function_that_takes_more(tmp_path: Path) -> None:
    own = OWN.replace(b"(model_runner)", b"(model_runner, size)")
    tree = BASE.changed({f"vllm/{WARMUP}": BASE.inside[WARMUP] + own})
    result = run(tmp_path, tree, ALL - {WARM})
    assert statuses(result)[WORK] == (Status.REFUSED, Reason.NOT_REACHED)
    assert "takes (model_runner, size)" in result.why
    assert result.changes == ()


def test_what_an_edit_says_is_on_its_line(tmp_path: Path) -> None:
    result = run(tmp_path, with_tests())
    after = {change.path: change.after.decode().splitlines() for change in result.changes}
    lines = {
        one.edit: after[one.file][one.line - 1] for one in result.outcomes if one.file and one.line
    }
    assert lines[KERNEL] == '@triton.jit(do_not_specialize=["num_tokens"])'
    assert lines[WARM] == "@torch.inference_mode()"
    assert "warmup_v1_slot_mapping_kernel(self.model_runner)" in lines[WORK]
    assert lines[UNIT].startswith("def test_")


@pytest.mark.parametrize(
    "wanted",
    [frozenset(some) for size in range(1, 5) for some in combinations(EDITS, size)],
    ids=lambda wanted: "+".join(sorted(wanted)),
)
def test_edits_that_are_left_out_are_neither_made_nor_listed(
    wanted: frozenset[str], tmp_path: Path
) -> None:
    result = run(tmp_path, with_tests(), wanted)
    assert {one.edit for one in result.outcomes} == wanted
    assert {edit for change in result.changes for edit in change.edits} <= wanted


def test_a_call_without_its_function_is_refused(tmp_path: Path) -> None:
    for number, wanted in enumerate((ALL - {WARM}, frozenset({WORK}))):
        found = statuses(run(tmp_path / str(number), wanted=wanted))
        assert found[WORK] == (Status.REFUSED, Reason.NO_WARMUP_MODULE)


def test_a_call_of_a_function_that_is_there_is_made_alone(tmp_path: Path) -> None:
    there = fixed(tmp_path / "first")
    tree = BASE.edited(WARMUP, there.inside[WARMUP])
    found = statuses(run(tmp_path / "second", tree, frozenset({WORK})))
    assert found == {WORK: (Status.EDIT, Reason.ADDED)}


@pytest.mark.parametrize("edit", [KERNEL, WARM])
def test_tests_are_for_the_edits_in_force(edit: str, tmp_path: Path) -> None:
    wanted = {edit, UNIT}
    result = run(tmp_path, with_tests(), frozenset(wanted))
    (text,) = (change.after for change in result.changes if change.path == TESTS)
    assert (b"do_not_specialize" in text) == (KERNEL in wanted)
    assert (b"borrowed_row" in text) == (WARM in wanted)


def test_a_second_run_finds_everything_there(tmp_path: Path) -> None:
    tree = fixed(tmp_path / "first", with_tests())
    result = run(tmp_path / "second", tree)
    assert {one.status for one in result.outcomes} == {Status.PRESENT}
    assert result.changes == ()


@pytest.mark.parametrize("removed", [KERNEL, WARM, WORK])
def test_what_is_missing_of_a_fixed_tree_is_put_back(removed: str, tmp_path: Path) -> None:
    file = {KERNEL: BLOCK_TABLE, WARM: WARMUP, WORK: WORKER}[removed]
    whole = fixed(tmp_path / "first")
    tree = whole.edited(file, BASE.inside[file])
    result = run(tmp_path / "second", tree)
    assert {one.edit for one in result.outcomes if one.status is Status.EDIT} == {removed}
    assert result.changes[0].after == whole.inside[file]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("00-kernel-class", Reason.SUPERSEDED_UPSTREAM),
        ("02-native-op-only", Reason.NO_KERNEL),
        ("14-no-block-table", Reason.NO_KERNEL),
    ],
)
def test_a_tree_that_needs_nothing_gets_nothing(name: str, reason: Reason, tmp_path: Path) -> None:
    result = run(tmp_path, fork(name).tree)
    assert set(statuses(result).values()) == {(Status.NOT_NEEDED, reason)}
    assert result.changes == ()


def test_a_kernel_that_no_launch_leads_to_refuses_every_edit(tmp_path: Path) -> None:
    table = BASE.inside[BLOCK_TABLE].replace(b"_compute_slot_mapping_kernel[", b"_other_kernel[")
    result = run(tmp_path, BASE.edited(BLOCK_TABLE, table))
    assert set(statuses(result).values()) == {(Status.REFUSED, Reason.NOT_LAUNCHED)}
    assert result.changes == ()


@pytest.mark.parametrize(
    ("file", "refused"),
    [(BLOCK_TABLE, set(EDITS)), (WARMUP, {WARM}), (WORKER, {WORK}), (TESTS, {UNIT})],
)
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"def f(:\n", Reason.UNPARSABLE),
        (b"x = '\xff'\n", Reason.UNPARSABLE),
        (b"x = 1\x00\n", Reason.UNPARSABLE),
        (None, Reason.UNREADABLE),
    ],
    ids=["syntax", "encoding", "NUL", "folder"],
)
def test_a_file_that_cannot_be_taken_in_is_refused(
    file: str, refused: set[str], data: bytes | None, reason: Reason, tmp_path: Path
) -> None:
    name = file if file == TESTS else f"vllm/{file}"
    files = {**with_tests().files}
    if data is None:
        files.pop(name)
        (tmp_path / name).mkdir(parents=True)
    else:
        files[name] = data
    found = statuses(run(tmp_path, Tree(files)))
    assert {edit for edit in refused if found[edit] == (Status.REFUSED, reason)} == refused, found


@pytest.mark.parametrize("file", [WARMUP, WORKER])
def test_an_empty_file_is_refused(file: str, tmp_path: Path) -> None:
    found = statuses(run(tmp_path, BASE.edited(file, b"")))
    edit = WARM if file == WARMUP else WORK
    assert found[edit] == (Status.REFUSED, Reason.NO_ANCHOR)


def test_planning_writes_nothing(tmp_path: Path) -> None:
    run(tmp_path, with_tests())
    found = {
        p.relative_to(tmp_path).as_posix(): p.read_bytes()
        for p in tmp_path.rglob("*")
        if p.is_file()
    }
    assert found == dict(with_tests().files)


@pytest.mark.parametrize("name", ["03-our-function-in-else-arm", "03-fix-in-place"])
def test_another_hands_warm_up_is_left_alone(name: str, tmp_path: Path) -> None:
    result = run(tmp_path, with_tests(fork(name).tree))
    found = statuses(result)
    assert found[WARM] == found[WORK] == (Status.PRESENT, Reason.ALREADY_PRESENT)
    assert {edit for change in result.changes for edit in change.edits} <= {KERNEL}


@pytest.mark.parametrize(
    ("table", "refused"),
    [
        ("from acme.tables import BlockTable\n", "expected a class BlockTable"),
        ("BlockTable = pick()\n", "expected a class BlockTable"),
        ("from .tables import *\n", "expected a class BlockTable"),
        ("import triton\nclass Tables:\n    pass\n", "expected a class BlockTable"),
        ("from ..utils import launch\nclass Tables:\n    pass\n", "expected a class BlockTable"),
        ("import numpy as np\n\ndef append_row(table, row): ...\n", ""),
        ("import acme\nclass BlockTable(acme.Table):\n    pass\n", "from acme.Table"),
        (f"{DERIVED}        return super().compute_slot_mapping()\n", "from acme.Table"),
        ("class BlockTable:\n    pass\n", ""),
        ("class BlockTable:\n    def compute_slot_mapping(self):\n        return 1\n", ""),
        ("import acme\nclass BlockTable(acme.T):\n    def compute_slot_mapping(self): ...\n", ""),
    ],
)
def test_only_what_is_seen_to_launch_no_kernel_is_not_affected(
    table: str, refused: str, tmp_path: Path
) -> None:
    tree = BASE.edited("v1/utils.py", b"import triton\n\ndef launch(): ...\n")
    result = run(tmp_path, tree.edited(BLOCK_TABLE, table.encode()))
    wanted = (
        (Status.REFUSED, Reason.NOT_LAUNCHED) if refused else (Status.NOT_NEEDED, Reason.NO_KERNEL)
    )
    assert set(statuses(result).values()) == {wanted}
    assert refused in result.outcomes[0].detail
    assert result.changes == ()


def test_a_kernel_that_no_launch_is_seen_to_lead_to_is_refused(tmp_path: Path) -> None:
    tree = BASE.edited(
        BLOCK_TABLE,
        b"class BlockTable:\n    def compute_slot_mapping(self):\n        self.mapper.run()\n",
    ).edited("v1/worker/ops.py", b"import x\n\ndef _compute_slot_mapping_kernel(a): ...\n")
    result = run(tmp_path, tree)
    assert set(statuses(result).values()) == {(Status.REFUSED, Reason.NOT_LAUNCHED)}
    assert (result.outcomes[0].file, result.outcomes[0].line) == ("vllm/v1/worker/ops.py", 3)


TILES = 'heuristics({"TILE": lambda args: args["max_num_tokens"]%s})'


@pytest.mark.parametrize(
    ("decorator", "refused"),
    [
        (TILES % ' * (args["num_tokens"] % 16)', "heuristics reads num_tokens"),
        ('autotune(configs=[], key=["num_tokens"])', "autotune reads num_tokens"),
        ("heuristics(TILES)", "heuristics are not written in its decorator"),
        (TILES % "", ""),
        ('autotune(configs=[], key=["block_size"])', ""),
    ],
)
def test_what_a_decorator_chooses_for_each_batch_is_not_reached(
    decorator: str, refused: str, tmp_path: Path
) -> None:
    table = BASE.inside[BLOCK_TABLE].replace(
        b"@triton.jit", b"@triton.%b\n@triton.jit" % decorator.encode(), 1
    )
    found = run(tmp_path, BASE.edited(BLOCK_TABLE, table))
    warm = next(one for one in found.outcomes if one.edit == WARM)
    wanted = (Status.REFUSED, Reason.NOT_REACHED) if refused else (Status.EDIT, Reason.ADDED)
    assert statuses(found)[WARM] == wanted
    assert refused in warm.detail


def test_the_workers_row_names_the_method_that_the_call_is_in(tmp_path: Path) -> None:
    tree = fork("00-work-in-private-method").tree
    added = next(one for one in run(tmp_path, tree).outcomes if one.edit == WORK)
    assert added.detail.startswith("_compile_or_warm_up_model calls ")
    there = next(one for one in run(tmp_path, fixed(tmp_path, tree)).outcomes if one.edit == WORK)
    assert there.detail.startswith("_compile_or_warm_up_model calls ")
    assert there.line == added.line


def test_two_classes_of_the_name_are_refused(tmp_path: Path) -> None:
    text = BASE.inside[BLOCK_TABLE] + b"\n\nif x:\n    class BlockTable:\n        pass\n"
    result = run(tmp_path, BASE.edited(BLOCK_TABLE, text))
    assert set(statuses(result).values()) == {(Status.REFUSED, Reason.AMBIGUOUS)}


def test_a_runner_with_its_tables_elsewhere_is_refused(tmp_path: Path) -> None:
    runner = "v1/worker/gpu_model_runner.py"
    text = BASE.inside[runner].replace(b"block_table", b"block_tables")
    found = statuses(run(tmp_path, BASE.edited(runner, text)))
    assert found[WARM] == (Status.REFUSED, Reason.SIGNATURE_CHANGED)


def with_its_kernel_in_the_warm_up_module() -> Tree:
    tree = fork("16-kernel-imported").tree
    _, kernels = tree.inside["v1/kernels/slots.py"].split(b"\n\n\n", 1)
    head, rest = tree.inside[WARMUP].split(b"import torch\n")
    triton = b"import torch\n\nfrom vllm.triton_utils import tl, triton\n"
    table = tree.inside[BLOCK_TABLE].replace(b"vllm.v1.kernels.slots", b"vllm.v1.worker.gpu.warmup")
    return tree.edited(BLOCK_TABLE, table).edited(WARMUP, head + triton + rest + b"\n\n" + kernels)


def test_two_edits_that_meet_in_one_file_are_both_made(tmp_path: Path) -> None:
    result = run(tmp_path / "first", with_its_kernel_in_the_warm_up_module())
    assert {one.path: one.edits for one in result.changes} == {
        f"vllm/{WARMUP}": (KERNEL, WARM),
        f"vllm/{WORKER}": (WORK,),
    }
    after = result.changes[0].after.decode()
    listed = after.splitlines()[result.outcomes[0].line - 1 :][:2]
    assert listed == [
        '@triton.jit(do_not_specialize=["num_tokens"])',
        "def slot_mapping_kernel(",
    ]
    assert after.count("def warmup_v1_slot_mapping_kernel(") == 1
    fixed = with_its_kernel_in_the_warm_up_module().changed(
        {one.path: one.after for one in result.changes}
    )
    again = run(tmp_path / "second", fixed)
    assert again.changes == ()
    assert {one.status for one in again.outcomes} == {Status.PRESENT, Status.NOT_NEEDED}
