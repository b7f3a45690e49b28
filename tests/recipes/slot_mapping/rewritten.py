"""Plans made by hand, of the trees under fixtures/forks, right or wrong in one place.

They do not go through the recipe, so that a proof is never judged by what it has to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import (
    FileChange,
    Outcome,
    Plan,
    Reason,
    RecipePlan,
    Status,
    Tree,
    Verdict,
)
from codemods.prove.subject import Subject
from tests.forks import trees

Tamper = Callable[[str], str]

KERNEL = '@triton.jit(do_not_specialize=["num_tokens"])\n'
IMPORT = "from .gpu.warmup import warmup_kernels, warmup_v1_slot_mapping_kernel\n"
CALL = """\
        if not self.use_v2_model_runner:
            warmup_v1_slot_mapping_kernel(self.model_runner)

"""
SEED = "        # No request sees the random state"
WARMUP = '''

@torch.inference_mode()
def warmup_v1_slot_mapping_kernel(model_runner: Any) -> None:
    """Compile the slot-mapping kernel of the first runner's own tables."""
    tables = model_runner.input_batch.block_table
    groups = tables.block_tables
    if any(group.num_blocks_per_row.any() for group in groups):
        return
    query_start_loc = torch.tensor([0, 1], dtype=torch.int32, device=model_runner.device)
    positions = torch.zeros(1, dtype=torch.int64, device=model_runner.device)
    try:
        tables.add_row(tuple([1] for _ in groups), 0)
        tables.commit_block_table(1)
        tables.compute_slot_mapping(1, query_start_loc, positions)
    finally:
        tables.clear_row(0)
        tables.commit_block_table(1)
    for group in groups:
        group.slot_mapping.gpu.zero_()
'''


def unchanged(text: str) -> str:
    return text


def swap(old: str, new: str) -> Tamper:
    """Put `new` for `old`, which must be there once."""

    def tamper(text: str) -> str:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        return text.replace(old, new)

    return tamper


def plan(
    root: Path,
    *,
    fork: str = "00-monitor-in-triton-utils",
    tree: Tamper = unchanged,
    kernel: Tamper = unchanged,
    warmup: Tamper = unchanged,
    worker: Tamper = unchanged,
) -> Plan:
    """A fork's tree written to `root`, and the plan that fixes it.

    `tree` changes the block table on both sides; the others change one rewritten file.
    """
    found = trees.fork(fork).tree
    block_table = tree(found.inside[trees.BLOCK_TABLE].decode())
    found.edited(trees.BLOCK_TABLE, block_table.encode()).write_to(root)
    old = {name: found.inside[name].decode() for name in (trees.WARMUP, trees.WORKER)}
    old[trees.BLOCK_TABLE] = block_table
    new = {
        trees.BLOCK_TABLE: kernel(block_table.replace("@triton.jit\n", KERNEL)),
        trees.WARMUP: warmup(old[trees.WARMUP] + WARMUP),
        trees.WORKER: worker(
            old[trees.WORKER]
            .replace("from .gpu.warmup import warmup_kernels\n", IMPORT)
            .replace(SEED, CALL + SEED)
        ),
    }
    edits = {
        trees.BLOCK_TABLE: "kernel",
        trees.WARMUP: "warmup",
        trees.WORKER: "worker",
    }
    changes = tuple(
        FileChange(
            f"{found.package}/{name}", old[name].encode(), new[name].encode(), (edits[name],)
        )
        for name in sorted(new)
        if new[name] != old[name]
    )
    made = {name for change in changes for name in change.edits}
    outcomes = tuple(
        Outcome(
            edit,
            Status.EDIT if edit in made else Status.PRESENT,
            Reason.ADDED if edit in made else Reason.ALREADY_PRESENT,
            "as the test has it",
            f"{found.package}/{name}",
            1,
        )
        for name, edit in edits.items()
    )
    return _plan(Tree(root, found.package), Verdict.FIXABLE, outcomes, changes)


def standing(fixed: Plan) -> Plan:
    """The tree with the plan written to it, as a plan that has nothing left to change."""
    for change in fixed.changes:
        (fixed.tree.root / change.path).write_bytes(change.after)
    outcomes = tuple(
        Outcome(o.edit, Status.PRESENT, Reason.ALREADY_PRESENT, o.detail, o.file, o.line)
        for o in fixed.outcomes
    )
    return _plan(fixed.tree, Verdict.ALREADY_FIXED, outcomes)


def subject(plan: Plan) -> Subject:
    """What a proof of the recipe is given."""
    return Subject(plan, Checkout(plan.tree.root, plan.tree.package), plan.recipes[0])


def _plan(
    tree: Tree,
    verdict: Verdict,
    outcomes: tuple[Outcome, ...],
    changes: tuple[FileChange, ...] = (),
) -> Plan:
    recipe = registry.get("slot-mapping")
    return Plan(tree, (RecipePlan(recipe.name, recipe.about, verdict, "", outcomes, changes),))
