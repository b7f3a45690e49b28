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
    need,
    recipe,
    run,
    run_well,
    with_crlf,
)


@pytest.fixture(autouse=True)
def _git() -> None:
    need("git")


def placed(case: Case, form: str, tree: Path) -> Path:
    """A copy of the tree with the patch beside it."""
    case.copy(tree)
    (tree.parent / PATCH).write_bytes(case.patch(form))
    return tree


@pytest.mark.parametrize("form", FORMS)
def test_git_apply_lands_each_form_once(case: Case, form: str, tmp_path: Path) -> None:
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
    kernel = tree / small.plan.changes[0].path
    kernel.write_bytes(
        kernel.read_bytes().replace(b"import triton\n", b"import triton as triton\n")
    )
    run_well("git commit -qam moved", tree)
    assert run(f"git am ../{PATCH}", tree).status != 0
    run_well("git am --abort", tree)
    run_well(f"git am -3 ../{PATCH}", tree)
    assert b"as triton" in kernel.read_bytes()
    assert b"do_not_specialize" in kernel.read_bytes()


@pytest.mark.parametrize("form", MAILBOXES)
def test_a_crlf_tree_needs_keep_cr(form: str, tmp_path: Path, small: Case) -> None:
    case = with_crlf(small)
    tree = placed(case, form, tmp_path / "tree")
    commit_all(tree)
    assert run(f"git am ../{PATCH}", tree).status != 0
    run_well("git am --abort", tree)
    case.assert_untouched(tree)
    run_well(f"{recipe('crlf').strip()} ../{PATCH}", tree)
    case.assert_fixed(tree)


@pytest.mark.parametrize("form", FORMS)
def test_a_crlf_tree_needs_nothing_more_of_git_apply(
    form: str, tmp_path: Path, small: Case
) -> None:
    case = with_crlf(small)
    tree = placed(case, form, tmp_path / "tree")
    commit_all(tree)
    # git calls every added carriage return "trailing whitespace" unless told not to look.
    run_well(f"git -c core.whitespace=cr-at-eol apply ../{PATCH}", tree)
    case.assert_fixed(tree)


@pytest.mark.parametrize("form", MAILBOXES)
def test_inside_an_outer_repository_git_apply_does_nothing_and_says_nothing(
    small: Case, form: str, tmp_path: Path
) -> None:
    tree = placed(small, form, tmp_path / "build" / "vllm")
    run_well("git init -q", tmp_path)
    ran = run(f"git apply ../{PATCH}", tree)
    assert (ran.status, ran.output) == (0, "")
    small.assert_untouched(tree)


def test_inside_an_outer_repository_git_apply_lands_a_plain_diff(
    small: Case, tmp_path: Path
) -> None:
    tree = placed(small, "unified", tmp_path / "build" / "vllm")
    run_well("git init -q", tmp_path)
    assert run_well(f"git apply ../{PATCH}", tree) == ""
    small.assert_fixed(tree)


@pytest.mark.parametrize("form", FORMS)
def test_the_documented_command_lands_inside_an_outer_repository(
    small: Case, form: str, tmp_path: Path
) -> None:
    tree = placed(small, form, tmp_path / "build" / "vllm")
    run_well("git init -q", tmp_path)
    (tree / PATCH).write_bytes(small.patch(form))
    assert run_well(recipe("inside"), tree) == ""
    small.assert_fixed(tree)
    assert run(recipe("inside"), tree).status != 0


@pytest.mark.parametrize("form", MAILBOXES)
def test_git_am_directory_lands_where_the_repository_tracks_vllm_below(
    small: Case, form: str, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    small.copy(outer / "third_party/vllm")
    commit_all(outer)
    (outer / PATCH).write_bytes(small.patch(form))
    run_well(recipe("directory"), outer)
    small.assert_fixed(outer / "third_party/vllm")


def test_a_repository_of_its_own_inside_another_needs_no_care(small: Case, tmp_path: Path) -> None:
    tree = placed(small, "git", tmp_path / "outer" / "vllm")
    run_well("git init -q", tmp_path / "outer")
    commit_all(tree)
    run_well(f"git am ../{PATCH}", tree)
    small.assert_fixed(tree)
    assert run_well("git rev-list --count HEAD", tree) == "2\n"
