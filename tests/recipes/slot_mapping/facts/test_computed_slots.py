"""Wrong slots are seen on small numbers, and what cannot be read is not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Reason, RecipePlan, Status
from codemods.engine.planning import make_plan
from codemods.engine.sources import SourceFile, Sources
from codemods.recipes.slot_mapping.facts import computed_slots
from codemods.recipes.slot_mapping.facts.block_tables import Tables
from codemods.recipes.slot_mapping.facts.computed_slots import wrong_slots
from codemods.recipes.slot_mapping.facts.simulated_tables import Classes
from codemods.recipes.slot_mapping.recipe import RECIPE
from codemods.recipes.warm_up.launches import find
from tests.forks.trees import BLOCK_TABLE, Tree, fork

BASE = fork("00-monitor-in-triton-utils").tree
TABLE = BASE.inside[BLOCK_TABLE].decode()
Changes = list[tuple[str, str]]

LAUNCH = "        _compute_slot_mapping_kernel[(num_reqs + 1,)](\n"
TAIL = "        tl.store(slots_ptr + token, PAD_ID, mask=tail)\n"
STORE = "tl.store(slots_ptr + token, slot, mask=ours)"
JIT = "@triton.jit\ndef _compute"
WRONG: Changes = [(STORE, STORE.replace("slot,", "slot + 1,"))]
NO_PADDING: Changes = [
    ("(num_reqs + 1,)", "(num_reqs,)"),
    ("row == tl.num_programs(0) - 1", "row == tl.num_programs(0)"),
]


def changed(changes: Changes, text: str = TABLE) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def found(text: str) -> str | None:
    sources = Sources(Checkout(Path("nowhere"), "vllm"))
    file = SourceFile("vllm/v1/worker/block_table.py", text.encode())
    sources.put(file)
    tables = Tables.of(sources, file)
    assert tables.groups is not None
    assert tables.one is not None
    kernels = find(sources, file, "BlockTable", "compute_slot_mapping").kernels
    assert kernels
    classes = Classes.of(sources, tables.groups, tables.one, kernels)
    assert classes is not None
    return wrong_slots(classes)


FAULTS: list[tuple[Changes, str]] = [
    (WRONG, "to put 203 in place 0 of the slot mapping of KV cache group 0, found 204 (2 requests"),
    ([(STORE, STORE.replace("token", "token + 1"))], "place 0 of the slot mapping"),
    ([("(token >= num_tokens)", "(token > num_tokens)")], "to put -1 in place 5"),
    ([(TAIL, "        pass_on = 0\n")], "found nothing"),
    ([("positions.shape[0]", "positions.shape[0] + 1")], "to put -1 in place 5"),
    ([("PAD_ID=PAD_SLOT_ID", "PAD_ID=-2")], "to put -1 in place 5"),
    ([("row * table_stride", "table_stride")], "place 0 of"),
    ([("block_table.gpu.stride(0)", "max_num_reqs")], "place 3 of"),
    ([("block_table.gpu.stride(0)", "max_num_batched_tokens")], "place 3 of"),
    ([("at % block_size", "at % table_stride")], "place 0 of"),
    ([("== tl.num_programs(0) - 1", ">= tl.num_programs(0) - 2")], "place 3 of"),
    (
        [("for table in self.block_tables:\n            table.compute",
          "for table in self.block_tables[1:]:\n            table.compute")],
        "KV cache group 0",
    ),
    ([("TILE: tl.constexpr", "TILE")], "found TILE, a parameter that is no tl.constexpr"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), FAULTS)
def test_a_wrong_slot_is_named(changes: Changes, says: str) -> None:
    detail = found(changed(changes))
    assert detail is not None
    assert says in detail


RIGHT: list[Changes] = [
    [],
    [("PAD_ID=PAD_SLOT_ID", "PAD_ID=-1")],
    [("PAD_SLOT_ID = -1", "PAD_SLOT_ID = -2"), ("PAD_ID=PAD_SLOT_ID", "PAD_ID=-2")],
    # Nothing pads here: the tables were padded before, or their runner does it.
    NO_PADDING,
    # The lanes in the other order, of which the first are of no use.
    [("token = tl.arange(0, TILE)", "token = 63 - tl.arange(0, 64)")],
    [("block_table.gpu.stride(0)", "block_table.gpu.shape[1]")],
    [("block_table.gpu.stride(0)", "max_num_batched_tokens // self.block_size")],
    [("at // block_size, mask=ours, other=0", "at // block_size")],
    [(LAUNCH, "        num_tokens, known = 0, num_tokens\n"
              "        while num_tokens:\n            num_tokens = 0\n"
              "        else:\n            num_tokens = known\n" + LAUNCH)],
    # Not every engine computes slots.
    [(LAUNCH, "        if self.mode == Mode.NONE:\n            return\n" + LAUNCH)],
    # One of two ways is right, and the other may be for no engine.
    [(LAUNCH, "        num_tokens = self.shift + 1 if self.shift else num_tokens\n" + LAUNCH)],
    [("            self.block_size,\n", "            self.kernel_size or self.block_size,\n")],
    [("            self.block_size,\n", "            self.block_size or 16,\n")],
]  # fmt: skip


@pytest.mark.parametrize("changes", RIGHT)
def test_nothing_is_said_of_right_slots(changes: Changes) -> None:
    assert found(changed(changes)) is None


FALL_BACK = (
    "\n\nif not HAS_TRITON:\n\n    def _compute_slot_mapping_kernel(*given):\n        pass\n\n\n"
)
FILLED = "        self.slot_mapping.gpu.fill_(PAD_SLOT_ID)\n"
TWICE = ("known = (*known, *known)", "known = known + known", "known = (known, known)")
CALLS = (
    "self.native(num_reqs)",
    "(lambda: super().store(num_reqs))()",
    "self.native.store(num_reqs)",
    "native.store(self, num_reqs)",
    "native.store([positions])",
    "self.stored.append(positions)",
)
# Each in a tree whose kernel stores wrong slots: what the rest does to them is not known.
UNREAD: list[Changes] = [
    [(JIT, FALL_BACK + JIT)],
    [(LAUNCH, FILLED + LAUNCH)],
    [(LAUNCH, "        self.slot_mapping.gpu[:] = 0\n" + LAUNCH)],
    [(LAUNCH, "        torch.ops.acme.slots(positions, self.slot_mapping.gpu)\n" + LAUNCH)],
    [(LAUNCH, "        _compute_slot_mapping_kernel[lambda meta: (num_reqs + 1,)](\n")],
    [(LAUNCH, "        _compute_slot_mapping_kernel[(num_reqs + 1, 1)](\n")],
    [(LAUNCH, "        _compute_slot_mapping_kernel[(10**9,)](\n")],
    [("            num_tokens,\n            self.max_num_batched_tokens,\n",
      "            *self.counts,\n")],
    [("            self.block_size,\n", "            self.step,\n")],
    [("            self.block_size,\n", "            self.step or 4,\n"),
     ("TILE=triton", "EXTRA=self.step, TILE=triton"), ("    row = tl", "    EXTRA\n    row = tl")],
    [("            positions,\n            self.block", "            at,\n            self.block")],
    [("    row = tl.program_id(0)\n", "    row = tl.program_id(0)\n    tl.debug_barrier()\n")],
    [("tl.arange(0, TILE)", "tl.arange(0, 1 << 40)")],
    [("tl.arange(0, TILE)", "tl.arange(0, 1099511627776)")],
    # Another may store the slots, before or behind the kernel.
    *([(LAUNCH, f"        {call}\n" + LAUNCH)] for call in CALLS),
    [(LAUNCH, "        launch = _compute_slot_mapping_kernel[(num_reqs,)]\n"
              "        launch(positions, self.slot_mapping.gpu)\n" + LAUNCH)],
    # How often, or with which arguments, the kernel is launched is not known.
    [(LAUNCH, "        for _ in self.rounds:\n            num_tokens -= 1\n" + LAUNCH)],
    [("            table.compute_slot_mapping(num_reqs, query_start_loc, positions)",
      "            table.compute_slot_mapping(num_reqs, query_start_loc, positions, **self.more)")],
    # Too much to evaluate.
    *(
        [(LAUNCH, "        known = (self.step,)\n" + f"        {text}\n" * 40 + LAUNCH)]
        for text in TWICE
    ),
    [(LAUNCH, "        known = self.step\n" + "        known += known\n" * 40 + LAUNCH)],
    [("    row = tl", "    for i in range(400):\n        tl.arange(0, 4096) + i\n    row = tl")],
    # What the kernel is given, and its language, may be another's.
    [(JIT, '@triton.heuristics({"PAD_ID": lambda given: -1})\n' + JIT)],
    [("import tl, triton", "import triton\nfrom vllm.v1.utils import language as tl")],
    [("    row = tl.program_id(0)\n", "    row = tl.get_element(tl.program_id(0), 0)\n")],
    [("+ row * table", "+ tl.cdiv(row - 6, 4) + row * table")],
]  # fmt: skip


@pytest.mark.parametrize("changes", UNREAD)
def test_what_is_not_read_is_not_judged(changes: Changes) -> None:
    assert found(changed([*WRONG, *changes])) is None


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_slots_are_those_of_the_proofs_reference(group: int, ranks: int) -> None:
    np = pytest.importorskip("numpy")
    from codemods.recipes.slot_mapping.proofs.engines import Engine
    from codemods.recipes.slot_mapping.proofs.slots import LAYOUTS, Batch, slots

    sizes = tuple((size, size) for size in computed_slots.BLOCK_SIZES)
    engine = Engine(sizes, max_num_tokens=computed_slots.MOST_TOKENS, dcp=(ranks, ranks - 1))
    blocks = tuple(
        np.array([*table.values.values()]).reshape(-1, table.shape[1])
        for table in map(computed_slots._blocks, range(len(sizes)))
    )
    batch = Batch(np.array(computed_slots.STARTS), np.array(computed_slots.POSITIONS), blocks)
    for layout in LAYOUTS:
        expected = slots(engine, group, batch, layout, computed_slots.PAD).tolist()
        assert computed_slots.slots_of(group, ranks) == expected


def plan(root: Path, tree: Tree, *skip: str) -> RecipePlan:
    tree.write_to(root)
    wanted = frozenset(RECIPE.edits) - {*skip}
    (one,) = make_plan(Checkout.find(root), [RECIPE], only=wanted).recipes
    return one


def test_a_tree_with_a_wrong_kernel_is_refused_before_it_is_fixed(tmp_path: Path) -> None:
    result = plan(tmp_path, BASE.edited(BLOCK_TABLE, changed(WRONG).encode()))
    kernel = result.outcomes[0]
    assert (kernel.status, kernel.reason) == (Status.REFUSED, Reason.HARMFUL)
    assert "--skip kernel" in kernel.detail
    assert result.changes == ()


def test_the_other_edits_are_made_where_the_kernels_is_left_out(tmp_path: Path) -> None:
    result = plan(tmp_path, BASE.edited(BLOCK_TABLE, changed(WRONG).encode()), "kernel")
    assert {one.reason for one in result.outcomes} == {Reason.ADDED, Reason.NO_TEST_MODULE}
