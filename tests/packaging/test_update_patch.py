"""The pages' general examples: the tool in the build, and the patch made for each release."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from consumers import (
    REPOSITORY,
    Case,
    contents,
    environment,
    example,
    need,
    pages,
    run,
    run_well,
    script,
    update_patch,
)


def test_require_rewrites_once_and_then_fails_in_one_line(small: Case, tmp_path: Path) -> None:
    tree = small.copy(tmp_path / "tree")
    assert run(example("require"), tree).status == 0
    small.assert_fixed(tree)
    again = run(f"{example('require').strip()} 2>&1 >/dev/null", tree)
    assert again.status == 1
    assert "already-fixed" in again.output
    assert again.output.count("\n") == 1
    small.assert_fixed(tree)


def test_without_require_a_fixed_tree_is_no_failure(small: Case, tmp_path: Path) -> None:
    tree = small.copy_fixed(tmp_path / "tree")
    assert run("vllm-codemods apply .", tree).status == 0
    small.assert_fixed(tree)


def test_each_recipe_has_a_step_that_stops_on_its_own(small: Case, tmp_path: Path) -> None:
    tree = small.copy(tmp_path / "tree")
    shutil.copytree(REPOSITORY / "fixtures/forks-kv/base", tree, dirs_exist_ok=True)
    run_well("git init -q && git add -f . && git commit -qm base", tree)
    assert run(example("require-each"), tree).status == 0
    assert run("vllm-codemods check . --recipe all", tree).status == 0
    run_well("git checkout -q vllm/v1/worker/block_table.py", tree)
    assert run("vllm-codemods apply . --recipe all --require fixable --dry-run", tree).status == 0
    first, second = example("require-each").splitlines()
    assert run(first.replace("fixable", "fixable --dry-run"), tree).status == 0
    assert run(second, tree).status == 1


def test_a_tool_that_fails_leaves_the_patch_that_is_there(small: Case, tmp_path: Path) -> None:
    patch = tmp_path / "warm-up-slot-mapping-1.0.patch"
    patch.write_bytes(b"good\n")
    broken = small.copy(tmp_path / "broken")
    (broken / "vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    assert update_patch(tmp_path, broken, "1.0").status == 3
    assert script("update-patch", tmp_path, "2.0").status == 2
    program = tmp_path / "bin/vllm-codemods"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    path = f"{program.parent}:{environment(tmp_path)['PATH']}"
    (tmp_path / "update").write_text(example("update-patch"))
    assert run(["sh", "update", "1.0"], tmp_path, PATH=path).status == 1
    assert patch.read_bytes() == b"good\n"


@pytest.mark.network
def test_a_build_without_network_has_the_tool_from_its_wheels(index: None, tmp_path: Path) -> None:
    shutil.copytree(
        REPOSITORY, tmp_path / "vllm-codemods", ignore=shutil.ignore_patterns(".*", "tests", "docs")
    )
    (tmp_path / "build").mkdir()
    ran = run(example("offline"), tmp_path / "build")
    assert ran.status == 0, ran.output
    assert run("tool/bin/vllm-codemods --version", tmp_path / "build").status == 0


def test_update_patch_makes_the_same_patch_each_time(small: Case, tmp_path: Path) -> None:
    patch = tmp_path / "warm-up-slot-mapping-1.0.patch"
    seen = set()
    for _ in range(2):
        assert update_patch(tmp_path, small.root, "1.0").status == 0
        seen.add(patch.read_bytes())
    (text,) = seen
    assert b"\nForwarded: " in text
    tree = small.copy(tmp_path / "tree")
    run_well(f"patch -Np1 -i ../{patch.name}", tree)
    small.assert_fixed(tree)


def test_update_patch_leaves_no_patch_where_none_is_needed(small: Case, tmp_path: Path) -> None:
    patch = tmp_path / "warm-up-slot-mapping-1.0.patch"
    patch.write_bytes(small.patches["dep3"])
    fixed = small.copy_fixed(tmp_path / "fixed")
    assert update_patch(tmp_path, fixed, "1.0").status == 1
    assert not patch.exists()


def test_update_patch_leaves_no_patch_of_a_refused_tree(small: Case, tmp_path: Path) -> None:
    broken = small.copy(tmp_path / "broken")
    (broken / "vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    assert update_patch(tmp_path, broken, "1.0").status == 3
    assert not list(tmp_path.glob("*.patch"))


@pytest.mark.network
def test_the_patch_of_0_26_applies_to_0_29_and_only_the_tool_says_that_it_is_not_needed(
    older: Case, newer: Path, tmp_path: Path
) -> None:
    need("patch")
    tried = Path(shutil.copytree(newer, tmp_path / "tried"))
    (tmp_path / "old.patch").write_bytes(older.patches["dep3"])
    run_well("patch -p1 -s --fuzz=0 -f < ../old.patch", tried)
    ran = update_patch(tmp_path, newer, "0.29.0")
    assert ran.status == 1
    assert "superseded" in ran.output
    assert not list(tmp_path.glob("warm-up-*"))


def test_the_same_options_give_the_same_bytes(small: Case, tmp_path: Path) -> None:
    command = f"vllm-codemods diff {small.root} --format git --author 'A <a@example.org>' --date 0"
    first = run(f"{command} 2>/dev/null", tmp_path)
    assert first.status == 0
    assert first.output.startswith("From: A <a@example.org>\nDate: Thu, 01 Jan 1970")
    assert run(f"{command} 2>/dev/null", tmp_path) == first


def test_a_dry_run_of_the_example_changes_nothing(small: Case, tmp_path: Path) -> None:
    tree = small.copy(tmp_path / "tree")
    before = contents(tree)
    assert run(f"{example('require').strip()} --dry-run", tree).status == 0
    assert contents(tree) == before


def test_the_pages_have_no_example_that_no_test_runs_and_nothing_to_fill_in() -> None:
    names = re.findall(r"<!-- example: ([\w-]+) -->", pages())
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    for name in names:
        assert re.search(rf"(example|run_line|script)\([\"']{name}[\"']", tests), name
    assert len(names) == len(set(names))
    assert not re.findall(r"OWNER|rev: v|example\.org", pages())
