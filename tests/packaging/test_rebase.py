"""The page's `rebase-fork`, on a small fork and through four releases, and its many branches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from consumers import (
    FIXTURE,
    REPOSITORY,
    Case,
    Ran,
    commit_all,
    contents,
    example,
    need,
    release,
    run,
    run_well,
    script,
    tool,
)

TRAILER = "Generated-by: vllm-codemods 0.2.0 (apply --recipe slot-mapping)"
TABLE = "vllm/v1/worker/block_table.py"
WORKER = "vllm/v1/worker/gpu_worker.py"
RELEASES = ("0.21.0", "0.24.0", "0.26.0", "0.29.0")


@pytest.fixture(autouse=True)
def _git() -> None:
    need("git")


@pytest.fixture
def fork(small: Case, tmp_path: Path) -> Path:
    """A branch `fork` with a commit of its own, one commit behind `upstream`."""
    return branched(small.copy(tmp_path / "fork"))


@pytest.fixture
def hybrid(small: Case, tmp_path: Path) -> Path:
    """The same of a tree that needs the fixes of two recipes."""
    tree = small.copy(tmp_path / "fork")
    shutil.copytree(REPOSITORY / "fixtures/forks-kv/base", tree, dirs_exist_ok=True)
    return branched(tree)


def branched(tree: Path) -> Path:
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


def rebase(fork: Path, *upstream: str) -> Ran:
    return script("rebase", fork, *(upstream or ("upstream",)))


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
    assert rebase(fork).status == 1
    (fork / "SHARED").write_text("both\n")
    run_well("git add SHARED && GIT_EDITOR=true git rebase --continue", fork)
    assert log(fork)[:4] == ["FIX", "shared", "ours", "shared"]
    small.assert_fixed(fork)
    assert_ended(fork)


def test_after_a_merge_that_kept_the_fix_it_does_nothing(fork: Path) -> None:
    assert rebase(fork).status == 0
    advance(fork, "MORE", "more\n")
    run_well("git merge -q --no-edit upstream", fork)
    before = run_well("git rev-parse HEAD", fork)
    assert rebase(fork).status == 0
    assert run_well("git rev-parse HEAD", fork) == before


def test_a_refused_tree_gets_no_commit(fork: Path) -> None:
    run_well("git merge -q --no-edit upstream", fork)
    commit_file(fork, WORKER, "def broken(:\n")
    assert rebase(fork).status == 3
    assert log(fork)[0] == WORKER
    assert_ended(fork)


def test_a_fix_that_is_refused_is_not_lost(small: Case, fork: Path) -> None:
    """The branch is as it was until its owner mends the tree, or gives the rebase up."""
    assert rebase(fork).status == 0
    before = run_well("git rev-parse fork", fork)
    advance(fork, WORKER, "def broken(:\n")
    for _ in range(2):
        ran = rebase(fork)
        assert ran.status == 1
        assert "git rebase --continue goes on, --abort puts the branch back" in ran.output
        assert run_well("git rev-parse fork", fork) == before
        again = rebase(fork)
        assert (again.status, again.output) == (1, "rebase-fork: end the rebase first\n")
        run_well("git rebase --abort", fork)
        assert run_well("git rev-parse HEAD", fork) == before
        assert_ended(fork)
    assert rebase(fork).status == 1
    commit_file(fork, WORKER, (FIXTURE / WORKER).read_text())
    run_well("git rebase --continue", fork)
    assert log(fork)[:3] == ["FIX", WORKER, "ours"]
    small.assert_fixed(fork)


def with_fixes(fork: Path, *options: str) -> list[str]:
    """Commit the fixes that the options ask for, and give the commands in their trailers."""
    command = ["vllm-codemods", "diff", ".", *options, "--format", "git", "-o", "../fixes"]
    run_well(command, fork)
    run_well("git am -q ../fixes", fork)
    return commands(fork)


def commands(fork: Path) -> list[str]:
    """The commands in the branch's trailers, oldest first."""
    form = "%(trailers:key=Generated-by,valueonly)"
    found = run_well(["git", "log", "--reverse", f"--format={form}", "upstream..fork"], fork)
    return [line.partition("(")[2].rstrip(")") for line in found.splitlines() if line]


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (["--recipe", "all"], ["apply --recipe slot-mapping", "apply --recipe kv-block-zeroing"]),
        (["--recipe", "kv-block-zeroing"], ["apply --recipe kv-block-zeroing"]),
        (["--skip", "unit-tests"], ["apply --recipe slot-mapping --skip unit-tests"]),
        (["--only", "kernel"], ["apply --recipe slot-mapping --only kernel"]),
        (["--package", "vllm"], ["apply --recipe slot-mapping --package vllm"]),
    ],
)
def test_each_fix_is_made_again_by_its_own_command(
    options: list[str], made: list[str], hybrid: Path
) -> None:
    assert with_fixes(hybrid, *options) == made
    before = contents(hybrid)
    ran = rebase(hybrid)
    assert ran.status == 0, ran.output
    assert commands(hybrid) == made
    assert contents(hybrid) == {**before, "THEIRS": b"theirs\n"}
    assert rebase(hybrid).status == 0
    assert commands(hybrid) == made


def test_fixes_that_were_squashed_are_both_made_again(hybrid: Path) -> None:
    made = with_fixes(hybrid, "--recipe", "all")
    run_well("git reset -q --soft HEAD~2", hybrid)
    message = "Both\n\n" + "\n".join(
        f"Generated-by: vllm-codemods 0.2.0 ({command})" for command in made
    )
    run_well(["git", "commit", "-qm", message], hybrid)
    assert rebase(hybrid).status == 0
    assert commands(hybrid) == made


def test_a_fix_by_hand_counts_once_it_has_the_trailer(fork: Path) -> None:
    run_well("vllm-codemods apply . --skip unit-tests && git commit -qam fix", fork)
    command = example("trailer").replace("VERSION", "0.2.0").replace("git commit", "git commit -q")
    run_well(f"{command.strip()} --amend --no-edit", fork)
    ran = rebase(fork)
    assert ran.status == 0, ran.output
    assert log(fork) == ["FIX", "ours", "theirs", "base"]


@pytest.mark.parametrize(
    "command", ["vllm-codemods diff", "apply --recipe $(touch ../ran)", "apply --output ../ran"]
)
def test_a_trailer_that_is_no_command_of_the_tool_stops_it(command: str, fork: Path) -> None:
    trailer = f"Generated-by: vllm-codemods 0.2.0 ({command})"
    commit_file(fork, "vllm/v1/worker/more.py", "x = 1\n", trailer)
    before = log(fork)
    ran = rebase(fork)
    assert ran.status == 1
    assert ran.output.endswith("has a trailer without the command that made it: amend it\n")
    assert log(fork) == before
    assert not (fork.parent / "ran").exists()
    assert_ended(fork)


@pytest.mark.parametrize("state", ["staged", "changed"])
def test_uncommitted_changes_stop_it_before_anything(state: str, fork: Path) -> None:
    (fork / WORKER).write_text("# Changed.\n")
    if state == "staged":
        run_well("git add .", fork)
    before = run_well("git status --porcelain && git rev-parse HEAD", fork)
    ran = rebase(fork)
    assert (ran.status, ran.output) == (1, "rebase-fork: commit or stash your changes first\n")
    assert run_well("git status --porcelain && git rev-parse HEAD", fork) == before


def test_what_git_am_does_not_take_leaves_no_half_done_am(fork: Path) -> None:
    run_well("git merge -q --no-edit upstream", fork)
    hook = fork / ".git/hooks/applypatch-msg"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert rebase(fork).status == 1
    assert_ended(fork)
    hook.unlink()
    assert rebase(fork).status == 0
    assert log(fork)[0] == "FIX"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "name one UPSTREAM: a branch, tag or commit"),
        (["upstream", "fork"], "name one UPSTREAM: a branch, tag or commit"),
        ([""], " is no branch, tag or commit here"),
        (["none"], "none is no branch, tag or commit here"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: list[str], line: str, fork: Path) -> None:
    before = log(fork)
    ran = script("rebase", fork, *arguments)
    assert (ran.status, ran.output) == (1, f"rebase-fork: {line}\n")
    assert log(fork) == before


def test_every_branch_of_a_mirror_has_a_row_and_the_worst_decides(fork: Path) -> None:
    run_well("git branch -m upstream main && git branch release/1.0", fork)
    run_well("vllm-codemods apply . && git commit -qam fix", fork)
    run_well("git branch release/2.0 && git clone -q --mirror . ../fork.git", fork)
    ran = run(example("branches"), fork)
    assert ran.status == 1, ran.output
    rows = [line.split(" | ") for line in ran.output.splitlines() if line.startswith("| ")]
    assert [(row[0].strip("| "), row[2]) for row in rows[1:]] == [
        ("main", "fixable"),
        ("release/1.0", "fixable"),
        ("release/2.0", "already-fixed"),
    ]
    commit_file(fork, WORKER, "def broken(:\n")
    run_well("git push -q ../fork.git fork:release/3.0", fork)
    assert run(example("branches"), fork).status == 3


def assert_ended(fork: Path) -> None:
    """Nothing is half done: no rebase, no am, no change."""
    assert not [
        name for name in ("rebase-merge", "rebase-apply") if (fork / ".git" / name).exists()
    ]
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
