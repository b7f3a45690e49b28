"""The sentences on why a tree needs the fix: read off the tree, whatever its version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import RUNNER, Checkout
from codemods.engine.plan import Plan
from codemods.engine.planning import make_plan
from codemods.output.mail import Mail, mail_for
from codemods.output.markdown import markdown
from codemods.output.patch import mails
from codemods.output.table import table
from tests.forks import trees

FOLDER = "model_executor/warmup"
LISTED = "00-monitor-in-utils"  # the parameter is unspecialised, and nothing warms up
UNLISTED = "00-monitor-in-triton-utils"
CLASSES = "for each class of num_tokens (1, a multiple of 16, any other)"

ON_THE_RUNNERS_TABLES = """
def warm_tables(runner) -> None:
    tokens = min(8, runner.scheduler_config.max_num_batched_tokens)
    if tokens <= 0:
        return
    tables = runner.input_batch.block_table
    tables.compute_slot_mapping(1, starts(tokens), places(tokens))
"""

ON_TABLES_OF_ITS_OWN = """
_BLOCK_SIZES = (3, 16)


def warm_tables(device, max_tokens) -> None:
    from vllm.v1.worker.block_table import BlockTable

    for size in _BLOCK_SIZES:
        table = BlockTable(size, 1, max_tokens, device)
        table.compute_slot_mapping(1, starts(device), places(device))
"""

ENTRY = """
from .tables import warm_tables


def kernel_warmup(worker) -> None:
    {}
"""
GENERATIVE = """if not worker.use_v2_model_runner and not worker.model_runner.is_pooling_model:
        warm_tables(worker.model_runner)"""


def plan(tmp_path: Path, files: dict[str, str], fork: str = LISTED, **options: object) -> Plan:
    tree = trees.fork(fork).tree
    for name, text in files.items():
        tree = tree.edited(name, text.encode())
    checkout = Checkout.find(tree.write_to(tmp_path))
    return make_plan(checkout, registry.chosen(()), **options)  # type: ignore[arg-type]


def why(tmp_path: Path, files: dict[str, str], fork: str = LISTED) -> str:
    return plan(tmp_path, files, fork).recipes[0].why


def warming(tables: str, entry: str = GENERATIVE) -> dict[str, str]:
    return {
        f"{FOLDER}/tables.py": tables,
        f"{FOLDER}/kernel_warmup.py": ENTRY.format(entry),
    }


# Nothing warms up


def test_where_nothing_warms_up_every_class_compiles_while_requests_wait(tmp_path: Path) -> None:
    assert why(tmp_path, {}, UNLISTED) == (
        "No warm-up calls BlockTable.compute_slot_mapping. So its Triton kernel is compiled while "
        f"the first requests wait, once {CLASSES}. The JIT monitor reports it."
    )


def test_where_the_parameter_is_listed_one_compile_is_left(tmp_path: Path) -> None:
    found = why(tmp_path, {})
    assert found.startswith("num_tokens is in do_not_specialize, but no warm-up calls ")
    assert "while the first request waits" in found
    assert CLASSES not in found


def test_without_a_monitor_none_is_said_to_report(tmp_path: Path) -> None:
    found = why(tmp_path, {}, "00-no-monitor")
    assert found.endswith(". The tool found no monitor that reports it.")


@pytest.mark.parametrize(
    "text",
    [
        "def warm_tables(runner):\n    runner.tables.compute_slot_mappings(1)\n",
        "# tables.compute_slot_mapping(1)\n",
        ON_THE_RUNNERS_TABLES,  # and nothing calls it
        "def broken(:\n    tables.compute_slot_mapping(1)\n",
    ],
    ids=["another-method", "a-comment", "not-called", "unparsable"],
)
def test_what_no_engine_runs_is_no_warm_up(tmp_path: Path, text: str) -> None:
    assert why(tmp_path, {f"{FOLDER}/tables.py": text}) == why(tmp_path, {})


# Upstream's own, as of 0.25


def test_the_runners_own_tables_but_not_for_pooling_models(tmp_path: Path) -> None:
    assert why(tmp_path, warming(ON_THE_RUNNERS_TABLES)) == (
        "warm_tables launches the kernel on the runner's own tables, but not for pooling models. "
        "Pooling models compile it while their first request waits. The JIT monitor reports it."
    )


def test_an_early_return_says_the_same(tmp_path: Path) -> None:
    entry = (
        "if worker.model_runner.is_pooling_model:\n        return\n"
        "    warm_tables(worker.model_runner)"
    )
    found = why(tmp_path, warming(ON_THE_RUNNERS_TABLES, entry))
    assert found == why(tmp_path, warming(ON_THE_RUNNERS_TABLES))


def test_tables_of_its_own_leave_other_compile_keys(tmp_path: Path) -> None:
    found = why(tmp_path, warming(ON_TABLES_OF_ITS_OWN))
    assert "on tables of its own (block sizes 3 and 16), but not for pooling models. " in found
    assert "Pooling models and engines whose tables have another compile key compile it" in found


def test_tables_of_its_own_leave_other_block_sizes_where_each_is_a_kernel(tmp_path: Path) -> None:
    block_table = trees.fork(LISTED).tree.inside["v1/worker/block_table.py"].decode()
    block_table = block_table.replace(
        "PAD_ID: tl.constexpr,", "PAD_ID: tl.constexpr,\n    SIZE: tl.constexpr,"
    )
    block_table = block_table.replace(
        "PAD_ID=PAD_SLOT_ID,", "PAD_ID=PAD_SLOT_ID,\n            SIZE=self.block_size,"
    )
    files = {"v1/worker/block_table.py": block_table}
    found = why(tmp_path, {**files, **warming(ON_TABLES_OF_ITS_OWN)})
    assert "engines whose tables have another block size or compile key compile it" in found


def test_a_warm_up_of_every_engine_leaves_nobody_out(tmp_path: Path) -> None:
    found = why(tmp_path, warming(ON_THE_RUNNERS_TABLES, "warm_tables(worker.model_runner)"))
    assert found.endswith(". The tool found no engine that it leaves out.")
    assert "pooling" not in found


def test_the_condition_of_a_fork_is_shown_as_written(tmp_path: Path) -> None:
    entry = "if worker.kind not in KINDS:\n        return\n    warm_tables(worker.model_runner)"
    found = why(tmp_path, warming(ON_THE_RUNNERS_TABLES, entry))
    assert ", but only where `worker.kind in KINDS`. Engines for which it is not called " in found


def test_a_warm_up_without_the_parameter_listed_leaves_the_other_classes(tmp_path: Path) -> None:
    found = why(tmp_path, warming(ON_THE_RUNNERS_TABLES), UNLISTED)
    assert f". All engines compile it again {CLASSES} that this does not launch" in found


def test_a_warm_up_of_another_name_beside_ours_is_named(tmp_path: Path) -> None:
    module = trees.fork("00-monitor-in-triton-utils").tree.inside[trees.WARMUP].decode()
    own = "\n\ndef acme_warm_slots(runner):\n    runner.tables.compute_slot_mapping(1, s, p)\n"
    found = why(tmp_path, {trees.WARMUP: module + own})
    assert found.startswith("acme_warm_slots of vllm/v1/worker/gpu/warmup.py calls ")


@pytest.mark.parametrize(
    ("fork", "function"),
    [("03-runner-method", "_warm_slot_mapping"), ("03-block-table-method", "warm_up")],
)
def test_a_warm_up_elsewhere_is_named_and_nothing_is_claimed_for_it(
    tmp_path: Path, fork: str, function: str
) -> None:
    found = why(tmp_path, {}, fork)
    assert found.startswith(f"{function} of vllm/v1/worker/")
    assert "the tool found no proof that it runs in every engine" in found


@pytest.mark.parametrize(
    "text",
    [
        "def warm_tables(tables):\n    # tables.compute_slot_mapping(1)\n    pass\n",
        "def warm_tables(tables): ...\n\nRUN = lambda tables: tables.compute_slot_mapping(1)\n",
        "def slots(tables):\n    tables.compute_slot_mapping(1)\n",
    ],
    ids=["a-comment", "behind-it", "no-warm-up"],
)
def test_what_only_reads_like_a_warm_up_is_not_named(tmp_path: Path, text: str) -> None:
    runner = trees.fork(LISTED).tree.inside[RUNNER].decode()
    assert why(tmp_path, {RUNNER: f"{runner}\n\n{text}"}) == why(tmp_path, {})


# With the fix, or a part of it


def test_a_fixed_tree_needs_nothing(tmp_path: Path) -> None:
    assert why(tmp_path, {}, "03-fix-in-place") == (
        "warmup_v1_slot_mapping_kernel launches the kernel before the first request, and "
        "num_tokens is in do_not_specialize. So no request waits for a compile of it."
    )


def test_our_call_with_the_parameter_specialised_says_so(tmp_path: Path) -> None:
    found = why(tmp_path, {}, "03-our-function-in-else-arm")
    assert "but num_tokens is specialised. So requests compile it again" in found


def test_one_edit_alone_does_not_make_the_tree_fixed(tmp_path: Path) -> None:
    one = plan(tmp_path, {}, only=frozenset({"kernel"})).recipes[0]
    assert "no warm-up calls BlockTable.compute_slot_mapping" in one.why


@pytest.mark.parametrize("gone", [(), ("v1/worker/gpu_model_runner.py",)], ids=["table", "runner"])
def test_what_is_gone_is_named(tmp_path: Path, gone: tuple[str, ...]) -> None:
    tree = trees.fork(LISTED).tree
    missing = {f"vllm/{name}" for name in ("v1/worker/block_table.py", *gone)}
    files = {name: data for name, data in tree.files.items() if name not in missing}
    replace(tree, files=files).write_to(tmp_path)
    found = make_plan(Checkout.find(tmp_path), registry.chosen(())).recipes[0].why
    assert found.startswith("The V1 runner is gone: " if gone else "There is no v1/worker/block_")
    assert all(name in found for name in gone)


# What prints it


def test_every_output_has_the_sentences(tmp_path: Path) -> None:
    found = plan(tmp_path, warming(ON_TABLES_OF_ITS_OWN))
    sentence = found.recipes[0].why
    assert f"  {sentence}\n" in table(found)
    assert sentence.replace("_", r"\_") in markdown(found)
    for dep3 in (False, True):
        mail: Mail = mail_for(found, author="A <a@example.invalid>", date="1700000000")
        ((_, text),) = mails(found, mail, dep3=dep3)
        assert " ".join(sentence.split()) in " ".join(text.decode().split())
