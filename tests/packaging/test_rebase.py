"""The page's `rebase-fork`, on a small fork and through four releases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from consumers import (
    FIXTURE,
    Case,
    Ran,
    commit_all,
    contents,
    need,
    release,
    run,
    run_well,
    script,
    tool,
)

TRAILER = "Generated-by: vllm-codemods 0.2.0 (vllm-codemods diff)"
TABLE = "vllm/v1/worker/block_table.py"
RELEASES = ("0.21.0", "0.24.0", "0.26.0", "0.29.0")


@pytest.fixture(autouse=True)
def _git() -> None:
    need("git")


@pytest.fixture
def fork(small: Case, tmp_path: Path) -> Path:
    """A branch `fork` with a commit of its own, one commit behind `upstream`."""
    tree = small.copy(tmp_path / "fork")
    commit_all(tree)
    run_well("git branch -m upstream && git checkout -q -b fork", tree)
    commit_file(tree, "OURS", "ours\n")
    run_well("git checkout -q upstream", tree)
    commit_file(tree, "THEIRS", "theirs\n")
    run_well("git checkout -q fork", tree)
    return tree


def commit_file(tree: Path, name: str, text: str, *trailers: str) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)
    message = "\n\n".join((name.lower(), *trailers))
    run_well(["git", "add", name], tree)
    run_well(["git", "commit", "-qm", message], tree)


def rebase(fork: Path, upstream: str = "upstream") -> Ran:
    ran = script("rebase", fork, upstream)
    if ran.status == 0 and run_well("git status --porcelain", fork) == "":
        with_trailer(fork)
    return ran


def with_trailer(fork: Path) -> None:
    """Put the trailer into the fix's commit, where the patch did not bring it."""
    message = run_well("git log -1 --format=%B", fork)
    if message.startswith("Warm up the V1") and "Generated-by: " not in message:
        run_well(["git", "commit", "--amend", "-qm", f"{message.strip()}\n\n{TRAILER}"], fork)


def log(fork: Path) -> list[str]:
    """Subjects, newest first; the fix's commit is FIX."""
    form = "%(trailers:key=Generated-by,valueonly,separator=%x20)|%s"
    lines = run_well(["git", "log", f"--format={form}"], fork).splitlines()
    return [
        "FIX" if line.startswith("vllm-codemods ") else line.partition("|")[2] for line in lines
    ]


def advance(fork: Path, name: str, text: str) -> None:
    """One more commit on upstream."""
    run_well("git checkout -q upstream", fork)
    commit_file(fork, name, text)
    run_well("git checkout -q fork", fork)


def test_a_rebase_that_lacks_the_fix_gets_it_as_a_commit(small: Case, fork: Path) -> None:
    ran = rebase(fork)
    assert ran.status == 0, ran.output
    assert log(fork) == ["FIX", "ours", "theirs", "base"]
    small.assert_fixed(fork)
    assert (fork / "THEIRS").exists()
    assert (fork / "OURS").exists()


def test_a_second_run_changes_nothing(fork: Path) -> None:
    assert rebase(fork).status == 0
    before = run_well("git rev-parse HEAD", fork)
    for _ in range(2):
        assert rebase(fork).status == 0
        assert run_well("git rev-parse HEAD", fork) == before


def test_the_fix_is_dropped_and_created_again_where_upstream_changed_its_lines(fork: Path) -> None:
    assert rebase(fork).status == 0
    table = (FIXTURE / TABLE).read_text()
    both = '@triton.jit(do_not_specialize=["max_num_tokens"])'
    advance(fork, TABLE, table.replace("@triton.jit\n", f"{both}\n"))
    commit_file(fork, "LATER", "later\n")
    assert run("git rebase upstream", fork).status != 0  # the fix's own commit would conflict
    run_well("git rebase --abort", fork)
    ran = rebase(fork)
    assert ran.status == 0, ran.output
    assert log(fork)[:5] == ["FIX", "later", "ours", TABLE, "theirs"]
    text = (fork / TABLE).read_text()
    assert '"num_tokens"' in text
    assert '"max_num_tokens"' in text


def test_a_fork_of_nothing_but_the_fix_ends_at_a_fixed_upstream(small: Case, fork: Path) -> None:
    run_well("git reset -q --hard HEAD~1", fork)
    assert rebase(fork).status == 0
    assert log(fork) == ["FIX", "theirs", "base"]
    run_well("git checkout -q upstream", fork)
    for name, after in small.changes.items():
        (fork / name).write_bytes(after)
    run_well("git commit -qam own-fix && git checkout -q fork", fork)
    ran = rebase(fork)
    assert ran.status == 0, ran.output
    assert log(fork) == ["own-fix", "theirs", "base"]


def test_a_commit_that_only_speaks_of_the_trailer_is_kept(fork: Path) -> None:
    commit_file(fork, "vllm/v1/worker/more.py", "x = 1\n", f"We like\n{TRAILER}\nvery much.", "End")
    run_well(["git", "commit", "-q", "--allow-empty", "-m", "vllm-codemods is used here"], fork)
    run_well(["git", "commit", "-q", "--allow-empty", "-m", "x", "-m", "Generated-by: other"], fork)
    assert rebase(fork).status == 0
    subjects = ["x", "vllm-codemods is used here", "vllm/v1/worker/more.py", "ours"]
    assert log(fork)[1:5] == subjects


def test_a_commit_that_holds_more_than_the_fix_stops_it_before_anything(fork: Path) -> None:
    commit_file(fork, "MORE", "more\n", TRAILER)
    before = run_well("git rev-parse HEAD", fork)
    ran = rebase(fork)
    assert ran.status == 1
    assert f"{before.strip()} holds more than the fix" in ran.output
    assert run_well("git rev-parse HEAD", fork) == before
    assert run_well("git status --porcelain", fork) == ""


def test_it_goes_on_after_a_conflict_of_the_forks_own(small: Case, fork: Path) -> None:
    assert rebase(fork).status == 0
    commit_file(fork, "SHARED", "ours\n")
    advance(fork, "SHARED", "theirs\n")
    assert rebase(fork).status != 0
    (fork / "SHARED").write_text("both\n")
    run_well("git add SHARED && GIT_EDITOR=true git rebase --continue", fork)
    ran = rebase(fork)
    assert ran.status == 0, ran.output
    assert log(fork)[:4] == ["FIX", "shared", "ours", "shared"]
    small.assert_fixed(fork)


def test_after_a_merge_that_kept_the_fix_it_does_nothing(fork: Path) -> None:
    assert rebase(fork).status == 0
    advance(fork, "MORE", "more\n")
    run_well("git merge -q --no-edit upstream", fork)
    before = run_well("git rev-parse HEAD", fork)
    assert rebase(fork).status == 0
    assert run_well("git rev-parse HEAD", fork) == before


def test_a_refused_tree_gets_no_commit(fork: Path) -> None:
    commit_file(fork, "vllm/v1/worker/gpu_worker.py", "def broken(:\n")
    assert rebase(fork).status == 3
    assert log(fork)[0] == "vllm/v1/worker/gpu_worker.py"
    assert run_well("git status --porcelain", fork) == ""


@pytest.mark.parametrize("where", ["repository", "git"])
def test_crlf_is_kept_wherever_it_comes_from(crlf: Case, where: str, tmp_path: Path) -> None:
    tree = crlf.copy(tmp_path / "fork")
    run_well("git init -q", tree)
    if where == "git":
        run_well("git config core.autocrlf true", tree)
    assert run("git add . && git commit -qm base && git branch upstream", tree).status == 0
    ran = rebase(tree)
    assert ran.status == 0, ran.output
    crlf.assert_fixed(tree)
    assert run_well("git status --porcelain", tree) == ""


@pytest.mark.network
def test_a_fork_goes_from_0_21_to_0_29(tmp_path: Path) -> None:
    """A commit of the fix at each release that needs it, none at the one that does not."""
    fork = tmp_path / "fork"
    fork.mkdir()
    run_well("git init -q -b upstream", fork)
    for version in RELEASES:
        shutil.rmtree(fork / "vllm", ignore_errors=True)
        release(version, fork)
        run_well(f"git add -f . && git commit -qm {version} && git tag {version}", fork)
    run_well("git checkout -q -b fork 0.21.0", fork)
    ours = fork / "vllm/v1/worker/utils.py"
    commit_file(fork, "vllm/v1/worker/utils.py", "# Ours.\n" + ours.read_text())
    for version in RELEASES:
        ran = rebase(fork, version)
        assert ran.status == 0, ran.output
        assert run_well("git status --porcelain", fork) == ""
        fix = ["FIX"] if version != "0.29.0" else []
        count = len(fix) + 1
        assert log(fork)[: count + 1] == [*fix, "vllm/v1/worker/utils.py", version]
        assert "FIX" not in log(fork)[count:]
        assert contents(fork) == expected(fork, version, tmp_path / version)
        tool("check", str(fork))


def expected(fork: Path, version: str, tree: Path) -> dict[str, bytes]:
    """The release as `apply` leaves it, with the fork's own line."""
    tree.mkdir()
    run_well(f"git archive {version} | tar -x -C {tree}", fork)
    utils = tree / "vllm/v1/worker/utils.py"
    utils.write_text("# Ours.\n" + utils.read_text())
    tool("apply", str(tree))
    return contents(tree)
