"""The recipes of docs/packaging.md that run the command itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from consumers import (
    FIXTURE,
    MAIL,
    PATCH,
    commit_all,
    need,
    recipe,
    run,
    run_well,
    with_command,
)

from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.output.patch import dep3

EPOCH = str(int(MAIL.date.timestamp()))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "fork"))


def contents(tree: Path) -> dict[str, bytes]:
    return {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }


def fixed_contents(tree: Path) -> dict[str, bytes]:
    plan = make_plan(Checkout.find(tree))
    return contents(tree) | {change.path: change.after for change in plan.changes}


def test_require_fails_in_one_line_once_the_tree_is_fixed(tree: Path, tmp_path: Path) -> None:
    wanted = fixed_contents(tree)
    assert run(recipe("require"), tree, **with_command(tmp_path)).status == 0
    assert contents(tree) == wanted
    again = run(
        "vllm-codemods apply . --require fixable 2>&1 >/dev/null", tree, **with_command(tmp_path)
    )
    assert again.status == 1
    assert "already-fixed" in again.output
    assert again.output.rstrip("\n").splitlines()[-1].endswith("so drop this step")
    assert contents(tree) == wanted


def test_without_require_a_fixed_tree_is_no_failure(tree: Path, tmp_path: Path) -> None:
    assert run("vllm-codemods apply .", tree, **with_command(tmp_path)).status == 0
    before = contents(tree)
    assert run("vllm-codemods apply .", tree, **with_command(tmp_path)).status == 0
    assert contents(tree) == before


def test_the_debian_recipe_writes_series_and_patch(tree: Path, tmp_path: Path) -> None:
    before = contents(tree)
    plan = make_plan(Checkout.find(tree))
    variables = with_command(
        tmp_path,
        SOURCE_DATE_EPOCH=EPOCH,
        GIT_AUTHOR_NAME="Ada Example",
        GIT_AUTHOR_EMAIL="ada@example.org",
    )
    assert run(recipe("debian"), tree, **variables).status == 0
    after = contents(tree)
    assert after.pop("debian/patches/series") == PATCH.encode() + b"\n"
    assert after.pop(f"debian/patches/{PATCH}") == dep3(plan, MAIL)
    assert after == before


def test_the_same_options_give_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    command = "vllm-codemods diff . --format git --author 'A <a@example.org>' --date 0"
    variables = with_command(tmp_path)
    first = run(f"{command} 2>/dev/null", tree, **variables)
    assert first.status == 0
    assert first.output.startswith("From: A <a@example.org>\nDate: Thu, 01 Jan 1970")
    assert run(f"{command} 2>/dev/null", tree, **variables) == first


# --- a fork's rebase ------------------------------------------------------------------------


@pytest.fixture
def fork(tree: Path) -> Path:
    """A branch `fork` with a commit of its own, one commit behind `upstream`."""
    need("git")
    commit_all(tree)
    run_well("git branch -m upstream && git checkout -q -b fork", tree)
    (tree / "OURS").write_text("ours\n")
    run_well("git add . && git commit -qm ours && git checkout -q upstream", tree)
    (tree / "THEIRS").write_text("theirs\n")
    run_well("git add . && git commit -qm theirs && git checkout -q fork", tree)
    return tree


def rebase(fork: Path) -> int:
    script = fork.parent / "rebase-fork"
    script.write_text(recipe("rebase"))
    script.chmod(0o755)
    return run(f"{script} upstream", fork, **with_command(fork.parent)).status


def log(fork: Path) -> list[str]:
    return run_well("git log --format=%s", fork).splitlines()


def test_a_rebase_that_lacks_the_fix_gets_it_as_a_commit(fork: Path) -> None:
    wanted = fixed_contents(fork)
    assert rebase(fork) == 0
    assert contents(fork) == wanted | {"THEIRS": b"theirs\n"}
    assert log(fork)[1:] == ["ours", "theirs", "base"]
    assert run_well("git status --porcelain", fork) == ""


def test_a_rebase_that_kept_the_fix_gets_no_commit(fork: Path) -> None:
    assert rebase(fork) == 0
    before = log(fork)
    assert rebase(fork) == 0
    assert log(fork) == before


def test_a_rebase_onto_a_tree_that_is_refused_commits_nothing(fork: Path) -> None:
    (fork / "vllm/v1/worker/gpu_worker.py").write_text("def broken(:\n")
    run_well("git commit -qam broken", fork)
    assert rebase(fork) == 3
    assert log(fork)[0] == "broken"
    assert run_well("git status --porcelain", fork) == ""


def test_the_page_has_no_recipe_that_no_test_takes() -> None:
    page = (Path(__file__).parents[2] / "docs/packaging.md").read_text(encoding="utf-8")
    names = set(re.findall(r"<!-- recipe: ([\w-]+) -->", page))
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    assert names == {
        name
        for name in names
        if re.search(rf'(recipe|run_line)\("{name}"\)|recipe\(\'{name}\'\)', tests)
    }
