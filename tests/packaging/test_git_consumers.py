"""git apply, git am and git am -3, beside, above and below other repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumers import (
    FORMS,
    MAILBOXES,
    PATCH,
    Case,
    commit_all,
    contents,
    example,
    need,
    run,
    run_well,
)


@pytest.fixture(autouse=True)
def _git() -> None:
    need("git")


def placed(case: Case, form: str, tree: Path) -> Path:
    """A copy of the tree with the patch beside it."""
    case.copy(tree)
    (tree.parent / PATCH).write_bytes(case.patches[form])
    return tree


@pytest.mark.parametrize("form", FORMS)
def test_git_apply_takes_each_form_once(case: Case, form: str, tmp_path: Path) -> None:
    tree = placed(case, form, tmp_path / "tree")
    commit_all(tree)
    assert run_well(f"git apply ../{PATCH}", tree) == ""
    case.assert_fixed(tree)
    assert run(f"git apply ../{PATCH}", tree).status != 0
    case.assert_fixed(tree)


@pytest.mark.parametrize("form", MAILBOXES)
def test_git_am_commits_a_mailbox_once(case: Case, form: str, tmp_path: Path) -> None:
    tree = placed(case, form, tmp_path / "tree")
    commit_all(tree)
    run_well(f"git am ../{PATCH}", tree)
    case.assert_fixed(tree)
    message = run_well("git log -1 --format=%B", tree)
    assert "vllm-project/vllm #42165" in message
    assert not [line for line in message.splitlines() if line.startswith(("Origin", "Forwarded"))]
    assert run_well("git status --porcelain", tree) == ""
    assert run(f"git am ../{PATCH}", tree).status != 0
    run_well("git am --abort", tree)
    case.assert_fixed(tree)


@pytest.mark.parametrize("form", MAILBOXES)
def test_git_am_3_is_a_no_op_the_second_time(case: Case, form: str, tmp_path: Path) -> None:
    tree = placed(case, form, tmp_path / "tree")
    commit_all(tree)
    run_well(f"git am -3 ../{PATCH}", tree)
    head = run_well("git rev-parse HEAD", tree)
    assert "already applied" in run_well(f"git am -3 ../{PATCH}", tree)
    assert run_well("git rev-parse HEAD", tree) == head
    case.assert_fixed(tree)


def test_git_am_3_finds_the_base_by_the_full_index_lines(small: Case, tmp_path: Path) -> None:
    tree = placed(small, "git", tmp_path / "tree")
    commit_all(tree)
    kernel = tree / "vllm/v1/worker/block_table.py"
    kernel.write_bytes(kernel.read_bytes().replace(b"    max_num_tokens,\n", b"    ours,\n"))
    run_well("git commit -qam moved", tree)
    assert run(f"git am ../{PATCH}", tree).status != 0
    run_well("git am --abort", tree)
    run_well(f"git am -3 ../{PATCH}", tree)
    assert b"    ours,\n" in kernel.read_bytes()
    assert b"do_not_specialize" in kernel.read_bytes()


# --- CRLF -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", MAILBOXES)
def test_crlf_in_the_repository_needs_keep_cr(form: str, tmp_path: Path, crlf: Case) -> None:
    tree = placed(crlf, form, tmp_path / "tree")
    commit_all(tree)
    (tree / PATCH).symlink_to(f"../{PATCH}")
    assert line_ends(tree) == {"i/crlf w/crlf"}
    assert run(f"git am {PATCH}", tree).status != 0
    run_well("git am --abort", tree)
    crlf.assert_untouched(tree)
    run_well(example("keep-cr"), tree)
    crlf.assert_fixed(tree)


@pytest.mark.parametrize("by", ["core.autocrlf", "eol=crlf"])
def test_crlf_that_git_makes_needs_plain_git_am(small: Case, by: str, tmp_path: Path) -> None:
    tree = small.copy(tmp_path / "tree")
    commit_all(tree)
    if by == "eol=crlf":
        (tree / ".git/info/attributes").write_text("*.py text eol=crlf\n")
    else:
        run_well("git config core.autocrlf true", tree)
    run_well("git rm -rq --cached . && git reset -q --hard", tree)
    before = contents(tree)
    run_well(f"vllm-codemods diff . --format git -o {PATCH}", tree)
    assert b"\r\n" in (tree / PATCH).read_bytes()
    assert line_ends(tree) == {"i/lf w/crlf"}
    assert run(f"git am --keep-cr {PATCH}", tree).status != 0
    run_well("git am --abort", tree)
    (tree / PATCH).rename(tmp_path / PATCH)
    assert contents(tree) == before
    run_well(f"git am ../{PATCH}", tree)
    assert run_well("git status --porcelain", tree) == ""
    in_repository = run_well("git diff --name-only HEAD~1 HEAD", tree).split()
    for name in in_repository:
        after = small.changes[name]
        assert (tree / name).read_bytes() == after.replace(b"\n", b"\r\n")
        assert run_well(f"git show HEAD:{name}", tree).encode() == after
    assert set(in_repository) == set(small.changes)


def line_ends(tree: Path) -> set[str]:
    """What the page's command says of the files of the patch, index and work tree."""
    ran = run(example("eol"), tree)
    assert ran.status == 0, ran.output
    return {" ".join(line.split()[:2]) for line in ran.output.splitlines()}


@pytest.mark.parametrize("form", FORMS)
def test_a_crlf_tree_needs_nothing_more_of_git_apply(form: str, tmp_path: Path, crlf: Case) -> None:
    tree = placed(crlf, form, tmp_path / "tree")
    commit_all(tree)
    # git calls every added carriage return "trailing whitespace" without an option against it.
    run_well(f"git -c core.whitespace=cr-at-eol apply ../{PATCH}", tree)
    crlf.assert_fixed(tree)


# --- beside other repositories --------------------------------------------------------------


@pytest.mark.parametrize("form", MAILBOXES)
def test_inside_an_outer_repository_git_apply_does_nothing_and_says_nothing(
    small: Case, form: str, tmp_path: Path
) -> None:
    tree = placed(small, form, tmp_path / "build" / "vllm")
    run_well("git init -q", tmp_path)
    ran = run(f"git apply ../{PATCH}", tree)
    assert (ran.status, ran.output) == (0, "")
    small.assert_untouched(tree)


def test_inside_an_outer_repository_git_apply_takes_a_plain_diff(
    small: Case, tmp_path: Path
) -> None:
    tree = placed(small, "unified", tmp_path / "build" / "vllm")
    run_well("git init -q", tmp_path)
    assert run_well(f"git apply ../{PATCH}", tree) == ""
    small.assert_fixed(tree)


@pytest.mark.parametrize("form", FORMS)
def test_the_documented_command_works_inside_an_outer_repository(
    small: Case, form: str, tmp_path: Path
) -> None:
    tree = placed(small, form, tmp_path / "build" / "vllm")
    run_well("git init -q", tmp_path)
    assert run_well(example("inside"), tree) == ""
    small.assert_fixed(tree)
    assert run(example("inside"), tree).status != 0


@pytest.mark.parametrize("form", MAILBOXES)
def test_git_am_directory_works_where_the_repository_tracks_vllm_below(
    small: Case, form: str, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    small.copy(outer / "third_party/vllm")
    commit_all(outer)
    (outer / PATCH).write_bytes(small.patches[form])
    run_well(example("directory"), outer)
    small.assert_fixed(outer / "third_party/vllm")


def test_a_repository_of_its_own_inside_another_needs_no_care(small: Case, tmp_path: Path) -> None:
    tree = placed(small, "git", tmp_path / "outer" / "vllm")
    run_well("git init -q", tmp_path / "outer")
    commit_all(tree)
    run_well(f"git am ../{PATCH}", tree)
    small.assert_fixed(tree)
    assert run_well("git rev-list --count HEAD", tree) == "2\n"
