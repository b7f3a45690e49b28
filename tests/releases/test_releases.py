"""Real releases: what is found in each, and what is written.

One for each row of the README's table; in a search every pinned one.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Verdict
from codemods.engine.planning import make_plan
from codemods.release.names import Source
from tests.releases.trees import (
    TRIED,
    Pinned,
    Rewritten,
    checkout,
    files_under,
    git,
    name_of,
    run,
    tree_of,
)

pytestmark = pytest.mark.network

EACH = pytest.mark.parametrize("pinned", TRIED, ids=name_of)
UNTOUCHED = pytest.mark.parametrize(
    "pinned",
    [pinned for pinned in TRIED if pinned.expected.verdict is not Verdict.FIXABLE],
    ids=name_of,
)
WHEEL_FILES = [
    "vllm/v1/worker/block_table.py",
    "vllm/v1/worker/gpu/warmup.py",
    "vllm/v1/worker/gpu_worker.py",
]


@EACH
def test_the_sources_are_those_that_were_pinned(pinned: Pinned) -> None:
    tree = tree_of(pinned.version, pinned.source)
    assert pinned.files
    found = {file.name: _sha256((tree / file.name).read_bytes()) for file in pinned.files}
    assert found == {file.name: file.sha256 for file in pinned.files}


@EACH
def test_verdict_and_edits_are_as_expected(pinned: Pinned) -> None:
    plan = _plan(pinned)
    found = {one.edit: (one.status, one.reason) for one in plan.outcomes}
    assert found == {one.edit: (one.status, one.reason) for one in pinned.expected.edits}
    assert plan.verdict is pinned.expected.verdict


@EACH
def test_the_reason_is_the_one_that_the_readme_gives(pinned: Pinned) -> None:
    assert _plan(pinned).recipes[0].why == pinned.expected.why


@EACH
def test_the_tree_says_which_release_it_is(pinned: Pinned) -> None:
    plan = _plan(pinned)
    assert plan.tree.version == pinned.version
    assert plan.tree.package == "vllm"


# Releases with nothing to do


@UNTOUCHED
def test_nothing_is_done_where_nothing_is_to_do(pinned: Pinned, tmp_path: Path) -> None:
    tree = checkout(tree_of(pinned.version, pinned.source), tmp_path / "tree")
    before = files_under(tree)
    assert run("check", tree).code == 0
    assert run("apply", tree).code == 0
    diff = run("diff", tree)
    assert (diff.code, diff.stdout) == (0, b"")
    assert files_under(tree) == before
    assert git(tree, "status", "--porcelain") == b""


# Releases that are fixed


def test_check_says_that_it_would_change(rewritten: Rewritten) -> None:
    assert rewritten.first_check.code == 1
    assert rewritten.first_check.json["verdict"] == "fixable"


def test_the_json_tells_the_edits_and_the_files_truly(rewritten: Rewritten) -> None:
    data = rewritten.first_check.json
    (recipe,) = data["recipes"]
    assert {edit["edit"]: (edit["status"], edit["reason"]) for edit in recipe["edits"]} == {
        one.edit: (one.status.value, one.reason.value) for one in rewritten.pinned.expected.edits
    }
    before, after = rewritten.before, rewritten.after
    assert data["files"] == [
        {
            "path": name,
            "sha256_before": _sha256(before[name]),
            "sha256_after": _sha256(after[name]),
        }
        for name in rewritten.changed
    ]


def test_only_the_expected_files_change(rewritten: Rewritten) -> None:
    expected = {one.edit for one in rewritten.pinned.expected.edits if one.status.value == "edit"}
    files = WHEEL_FILES if "kernel" in expected else WHEEL_FILES[1:]
    tests = ["tests/v1/worker/test_gpu_model_runner.py"] if "unit-tests" in expected else []
    assert rewritten.changed == tests + files
    assert set(rewritten.after) == set(rewritten.before)


def test_the_diff_applied_by_git_gives_the_bytes_of_apply(rewritten: Rewritten) -> None:
    assert rewritten.diff.code == 0
    assert files_under(rewritten.patched) == rewritten.after


def test_apply_ends_well_and_check_says_already_fixed(rewritten: Rewritten) -> None:
    assert rewritten.apply.code == 0
    assert rewritten.last_check.code == 0
    assert rewritten.last_check.json["verdict"] == "already-fixed"
    assert rewritten.last_check.json["files"] == []


def test_a_second_apply_changes_nothing(rewritten: Rewritten) -> None:
    before = {path: path.stat() for path in rewritten.tree.rglob("*.py")}
    again = run("apply", rewritten.tree, "--json", "--allow-dirty")
    assert again.code == 0
    assert again.json["verdict"] == "already-fixed"
    for path, status in before.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)


def test_a_second_diff_is_empty(rewritten: Rewritten) -> None:
    again = run("diff", rewritten.tree)
    assert (again.code, again.stdout) == (0, b"")


def test_git_finds_no_whitespace_fault_and_no_other_mode(rewritten: Rewritten) -> None:
    assert git(rewritten.tree, "diff", "--check") == b""
    assert git(rewritten.tree, "diff", "--summary") == b""


def test_no_line_above_the_kernel_moves(rewritten: Rewritten) -> None:
    name = "vllm/v1/worker/block_table.py"
    before, after = rewritten.before[name], rewritten.after[name]
    assert before.count(b"\n") == after.count(b"\n")


def test_changed_files_compile(rewritten: Rewritten) -> None:
    for name in rewritten.changed:
        compile(rewritten.after[name], name, "exec", dont_inherit=True)


def test_the_call_is_before_the_monitor_at_the_top_level_of_its_method(
    rewritten: Rewritten,
) -> None:
    tree = ast.parse(rewritten.after["vllm/v1/worker/gpu_worker.py"])
    method = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "compile_or_warm_up_model"
    )
    sources = [ast.unparse(statement) for statement in method.body]
    call = "warmup_v1_slot_mapping_kernel(self.model_runner)"
    ours = [at for at, source in enumerate(sources) if call in source]
    monitor = [at for at, source in enumerate(sources) if "jit_monitor" in source]
    assert len(ours) == 1
    assert sources[ours[0]] == f"if not self.use_v2_model_runner:\n    {call}"
    assert all(ours[0] < at for at in monitor)


def test_ruff_finds_nothing_new(rewritten: Rewritten) -> None:
    after = _findings(rewritten.tree, rewritten.changed)
    assert not after - _findings(rewritten.original, rewritten.changed)


def test_what_was_formatted_for_ruff_still_is(rewritten: Rewritten) -> None:
    after = _misformatted(rewritten.tree, rewritten.changed)
    assert after <= _misformatted(rewritten.original, rewritten.changed)


# The releases by name


@pytest.mark.parametrize("version", ["0.16.0", "0.21.0", "0.24.0", "0.33.0"])
def test_a_release_can_stand_in_place_of_a_tree(version: str, tmp_path: Path) -> None:
    tree = tree_of(version, Source.WHEEL)
    before = files_under(tree)
    by_name, by_path = run("diff", "--release", version), run("diff", tree)
    assert (by_name.code, by_name.stdout) == (by_path.code, by_path.stdout)
    assert files_under(tree) == before


def test_the_patch_of_0_21_0_is_of_three_files() -> None:
    tree_of("0.21.0", Source.WHEEL)
    patch = run("diff", "--release", "0.21.0").stdout.decode()
    names = [line.split("\t")[0] for line in patch.splitlines() if line.startswith("+++ ")]
    assert names == [f"+++ b/{name}" for name in WHEEL_FILES]


@pytest.mark.parametrize("version", ["0.21.5", "not-a-release"])
def test_no_such_release_is_one_line_and_exit_2(version: str) -> None:
    tree_of("0.21.0", Source.WHEEL)
    ran = run("check", "--release", version)
    assert ran.code == 2
    assert ran.stdout == b""
    assert len(ran.stderr.splitlines()) == 1
    assert version in ran.stderr


@cache
def _plan(pinned: Pinned) -> Plan:
    return make_plan(Checkout.find(tree_of(pinned.version, pinned.source)), registry.chosen(()))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _ruff(tree: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def _findings(tree: Path, names: list[str]) -> Counter[tuple[str, str, str]]:
    # In the whole release ruff sees by itself that vllm is first party; here most of it is absent.
    first_party = 'lint.isort.known-first-party = ["vllm"]'
    output = _ruff(
        tree, "check", "--no-cache", "--config", first_party, "--output-format", "json", *names
    )
    return Counter(
        (Path(one["filename"]).name, one["code"], one["message"]) for one in json.loads(output)
    )


def _misformatted(tree: Path, names: list[str]) -> set[str]:
    output = _ruff(tree, "format", "--no-cache", "--check", *names)
    return {line for line in output.splitlines() if line.startswith("Would reformat")}
