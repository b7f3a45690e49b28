"""Plan -> patch, byte for byte on small files, and as git and GNU patch take it."""

from __future__ import annotations

import ast
import shutil
import subprocess
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

import pytest

import codemods.output.patch
from codemods.cli.main import main
from codemods.engine.hunks import hunks
from codemods.engine.plan import Outcome, Plan, Reason, RecipePlan, Status, Verdict
from codemods.output.applies import applies_exactly
from codemods.output.mail import Mail
from codemods.output.patch import blob_id, mailbox, mails, unified
from codemods.output.table import version
from tests.output.forms import (
    DATE,
    FILES,
    MAIL,
    dep3_form,
    every_form,
    git_form,
    numbered,
    plan_over,
)
from tests.plans import ABOUT, WHY, plan_of

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="GNU patch is not installed")


# --- nothing to say -------------------------------------------------------------------------


def test_an_empty_plan_gives_no_bytes_in_any_form(tmp_path: Path) -> None:
    assert every_form(plan_over(tmp_path)) == [b"", b"", b""]


def test_a_file_that_stays_as_it_is_is_not_in_the_patch(tmp_path: Path) -> None:
    assert every_form(plan_over(tmp_path, ("a.py", b"x\r\n\fy", b"x\r\n\fy"))) == [b"", b"", b""]


def test_an_unchanged_file_beside_a_changed_one_is_left_out(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("a.py", b"x\n", b"x\n"), ("b.py", b"x\n", b"y\n"))
    for form in every_form(plan):
        assert b"a/a.py" not in form
        assert form.count(b"+++ ") == 1


def test_making_a_patch_leaves_the_tree_alone(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("vllm/a.py", b"x\n", b"y\n"))
    stamp = (tmp_path / "vllm/a.py").stat()
    assert all(applies_exactly(plan.changes, form) for form in every_form(plan))
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["vllm", "a.py"]
    assert (tmp_path / "vllm/a.py").read_bytes() == b"x\n"
    assert (tmp_path / "vllm/a.py").stat().st_mtime_ns == stamp.st_mtime_ns


def test_the_same_plan_and_mail_give_the_same_bytes(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("b.py", b"x\n", b"y\n"), ("a.py", b"x\n", b"y\n"))
    assert every_form(plan) == every_form(plan)


# --- the plain diff -------------------------------------------------------------------------


def test_a_changed_line_has_three_lines_of_context_on_each_side(tmp_path: Path) -> None:
    after = numbered(9).replace(b"line 5\n", b"line five\n")
    assert unified(plan_over(tmp_path, ("vllm/a.py", numbered(9), after))) == (
        b"--- a/vllm/a.py\n"
        b"+++ b/vllm/a.py\n"
        b"@@ -2,7 +2,7 @@\n"
        b" line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n"
    )


def test_appended_lines_follow_the_last_three(tmp_path: Path) -> None:
    assert unified(plan_over(tmp_path, ("a.py", numbered(5), numbered(5) + b"new\n"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -3,3 +3,4 @@\n line 3\n line 4\n line 5\n+new\n"
    )


def test_a_file_of_one_line_has_a_range_without_a_length(tmp_path: Path) -> None:
    assert unified(plan_over(tmp_path, ("a.py", b"x\n", b"y\n"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"
    )


def test_a_missing_final_newline_is_said_on_the_side_that_lacks_it(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("a.py", b"x", b"x\ny\n"), ("b.py", b"x\n", b"y"))
    assert unified(plan) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n"
        b"-x\n\\ No newline at end of file\n+x\n+y\n"
        b"--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n"
        b"-x\n+y\n\\ No newline at end of file\n"
    )


def test_a_missing_final_newline_that_stays_missing_is_said_once(tmp_path: Path) -> None:
    assert unified(plan_over(tmp_path, ("a.py", b"x\nend", b"y\nend"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x\n+y\n end\n\\ No newline at end of file\n"
    )


def test_a_carriage_return_belongs_to_its_line_and_not_to_the_patch(tmp_path: Path) -> None:
    assert unified(plan_over(tmp_path, ("a.py", b"x\r\nk\r\n", b"y\r\nk\r\n"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x\r\n+y\r\n k\r\n"
    )


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("b/a.py", b"x\n", b"y\n"), ("a.py", b"x\n", b"y\n"))
    assert unified(plan).index(b"a/a.py") < unified(plan).index(b"a/b/a.py")


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("vllm/a.py", b"--- a/vllm/a.py\n"),
        ("v llm/a.py", b"--- a/v llm/a.py\t\n"),
        ("vllm/\u00e4.py", b'--- "a/vllm/\\303\\244.py"\n'),
        ('v"l\\lm.py', b'--- "a/v\\"l\\\\lm.py"\n'),
        ("v\tl\nm.py", b'--- "a/v\\tl\\nm.py"\n'),
        ("v\x7f.py", b'--- "a/v\\177.py"\n'),
        ("v\udce4.py", b'--- "a/v\\344.py"\n'),
    ],
)
def test_names_are_quoted_as_git_quotes_them(tmp_path: Path, path: str, written: bytes) -> None:
    plan = plan_over(tmp_path, (path, b"x\n", b"y\n"))
    assert unified(plan).startswith(written)
    assert all(applies_exactly(plan.changes, form) for form in every_form(plan))


# --- the mailbox ----------------------------------------------------------------------------


def test_a_mailbox_has_header_body_diffstat_and_full_index_lines(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("vllm/a.py", b"x\n", b"y\n"))
    header, body = git_form(plan).split(b"\n\n", 1)
    assert header == (
        b"From: Ada Example <ada@example.org>\n"
        b"Date: Wed, 20 May 2026 08:00:00 +0000\n"
        b"Subject: Warm up the kernel"
    )
    what = b"What changes:\n\n- table, vllm/a.py: Adds a name.\n"
    assert body.startswith(WHY.encode() + b"\n\n" + what)
    assert f"\nThe idea is from {ABOUT.origin}:\n{ABOUT.origin}\n".encode() in body
    trailer = f"Generated-by: vllm-codemods {version()} (apply --recipe made-up)"
    assert body.split(b"\n---\n")[0].splitlines()[-1] == trailer.encode()
    assert body.split(b"\n---\n")[1] == (
        b" vllm/a.py | 2 +-\n"
        b" 1 file changed, 1 insertion(+), 1 deletion(-)\n"
        b"\n"
        b"diff --git a/vllm/a.py b/vllm/a.py\n"
        b"index 587be6b4c3f93f93c489c0111bba5596147a26cb"
        b"..975fbec8256d3e8a3797e7a3611380f27c49f4ac 100644\n"
        b"--- a/vllm/a.py\n+++ b/vllm/a.py\n@@ -1 +1 @@\n-x\n+y\n"
    )


def test_dep3_is_the_mailbox_with_four_more_fields(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("vllm/a.py", b"x\n", b"y\n"))
    pull = ABOUT.origin.encode()
    fields = b"Origin: other, vllm-codemods %b\nBug: %b\nForwarded: not-needed\n"
    fields += b"Last-Update: 2026-05-20\n"
    header, body = git_form(plan).split(b"\n\n", 1)
    assert dep3_form(plan) == header + b"\n" + fields % (version().encode(), pull) + b"\n" + body


def test_a_mailbox_ends_with_its_last_hunk(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("a.py", b"x\n", b"y\n"))
    assert git_form(plan).endswith(b"+y\n")


def test_an_executable_file_keeps_its_mode(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("a.py", b"x\n", b"y\n"))
    changes = [replace(change, mode="100755") for change in plan.changes]
    assert b" 100755\n" in git_form(plan_of(plan.outcomes, changes))
    assert b" 100644\n" in git_form(plan)


def test_the_empty_blob_has_the_name_git_gives_it() -> None:
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_body_that_is_not_ascii_says_its_charset(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("a.py", b"x\n", b"y\n"))
    outcome = Outcome("call", Status.EDIT, Reason.ADDED, "Calls it \u2014 once.", "a.py", 1)
    assert b"charset=UTF-8" in git_form(plan_of([outcome], plan.changes))
    assert b"charset" not in git_form(plan)


def series(tmp_path: Path) -> Plan:
    """Two recipes that change one file, the second what the first made of it, and one that none."""
    first = plan_over(tmp_path, ("a.py", b"x\n", b"y\n")).recipes[0]
    second = plan_over(tmp_path, ("a.py", b"y\n", b"z\n")).recipes[0]
    none = RecipePlan("idle", ABOUT, Verdict.NOT_AFFECTED, "It is fine.", ())
    third = replace(second, recipe="other", about=ABOUT._replace(subject="Make more of it up"))
    return replace(plan_of(), recipes=(first, none, third))


@pytest.mark.parametrize("dep3", [False, True])
def test_each_recipe_that_changes_something_has_a_mail(tmp_path: Path, dep3: bool) -> None:
    made = mails(series(tmp_path), Mail(MAIL.author, DATE), dep3=dep3)
    assert [name for name, _ in made] == ["0001-made-up.patch", "0002-other.patch"]
    assert [line for _, mail in made for line in mail.splitlines() if b"Subject" in line] == [
        b"Subject: Make the fix up",
        b"Subject: Make more of it up",
    ]
    assert mailbox(made).count(b"From " + b"0" * 40 + b" ") == 2
    assert mailbox(made[:1]) == made[0][1]


def test_what_takes_the_fix_out_is_named_a_revert(tmp_path: Path) -> None:
    change = plan_over(tmp_path, ("a.py", b"x\n", b"y\n")).changes
    plan = plan_of([], change, verdict=Verdict.SUPERSEDED)
    mail = dict(mails(plan, Mail(MAIL.author, DATE), dep3=True))["0001-made-up.patch"]
    assert b'\nSubject: Revert "Make the fix up"\n' in mail
    assert b"\nForwarded: not-needed\n" in mail
    assert b"The idea is from" not in mail


def test_a_plain_diff_of_several_recipes_is_one(tmp_path: Path) -> None:
    assert unified(series(tmp_path)) == b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+z\n"


def test_a_refused_recipe_leaves_no_patch(tmp_path: Path) -> None:
    refused = Outcome("table", Status.REFUSED, Reason.NO_ANCHOR, "No place.")
    changes = plan_over(tmp_path, ("a.py", b"x\n", b"y\n")).changes
    one = plan_of([refused], changes, verdict=Verdict.REFUSED)
    assert every_form(one) == [b"", b"", b""]


# --- the self-check -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["unified", "git", "dep3"])
def test_the_command_refuses_to_write_a_patch_that_does_not_land(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    form: str,
) -> None:
    monkeypatch.setattr(
        codemods.output.patch, "hunks", lambda before, after: hunks(before, after)[:-1]
    )
    fixture = Path(__file__).resolve().parents[2] / "fixtures/forks/base"
    out = tmp_path / "patch"
    assert main(["diff", str(fixture), "--format", form, "-o", str(out)]) == 3
    assert not out.exists()
    assert main(["diff", str(fixture), "--format", form]) == 3
    assert capfd.readouterr().out == ""


# --- git and GNU patch, when they are there -------------------------------------------------


@needs_git
def test_the_diffstat_and_the_index_lines_are_gits_own(tmp_path: Path) -> None:
    long = numbered(200)
    files = [
        ("vllm/v1/worker/a.py", b"", long),
        ("b.py", long, long.replace(b"1", b"one")),
        ("c.py", b"x\n", b"y\n"),
    ]
    plan = plan_over(tmp_path, *files)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    for path, _, after in files:
        (tmp_path / path).write_bytes(after)
    command = [*git, "diff", "--stat=72", "--patch", "--full-index", "--no-color"]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    ours = git_form(plan).split(b"---\n", 1)[1]
    assert ours.split(b"\n\n", 1)[0] == shown.split(b"\n\n", 1)[0]
    for line in shown.splitlines():
        if line.startswith((b"diff --git", b"index ")):
            assert line in ours.splitlines()


@needs_git
def test_git_am_restores_author_date_and_subject(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, ("a.py", b"x\n", b"y\n"))
    author, subject = (
        "J\u00f6rg M\u00fcller, Dr. rer. nat <j@example.org>",
        "W\u00e4rme den Kernel auf: " * 6,
    )
    when = DATE.astimezone(timezone(timedelta(hours=-3, minutes=-30)))
    patch = dep3_form(plan, Mail(author, when, subject))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    subprocess.run([*git, "am", "-q"], input=patch, check=True)
    shown = subprocess.run(
        [*git, "log", "-1", "--format=%an <%ae>%n%aI%n%s"], capture_output=True, check=True
    ).stdout.decode()
    assert shown.split("\n")[:3] == [author, "2026-05-20T04:30:00-03:30", subject.strip()]


@needs_git
def test_git_am_takes_a_series(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    plan = series(root)
    (root / "a.py").write_bytes(b"x\n")
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    patch = mailbox(mails(plan, Mail(MAIL.author, DATE)))
    subprocess.run([*git, "am", "-q"], input=patch, check=True)
    assert (root / "a.py").read_bytes() == b"z\n"
    log = subprocess.run([*git, "log", "--format=%s"], capture_output=True, check=True).stdout
    assert log.decode().splitlines() == ["Make more of it up", "Make the fix up", "x"]


@needs_patch
def test_gnu_patch_takes_every_form_without_a_word(tmp_path: Path) -> None:
    plan = plan_over(tmp_path, *FILES)
    for number, form in enumerate(every_form(plan)):
        copy = tmp_path / f"copy{number}"
        plan_over(copy, *FILES)
        subprocess.run(
            ["patch", "-s", "-p1", "-F", "0"], input=form, cwd=copy, check=True, capture_output=True
        )
        for path, _, after in FILES:
            found = (copy / path).read_bytes() if (copy / path).exists() else b""
            assert found == after


# --- speed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["output/patch", "engine/hunks", "output/mail"])
def test_a_plain_diff_imports_nothing_heavy(module: str) -> None:
    source = (Path(codemods.__file__).parent / f"{module}.py").read_text()
    top = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in top
    }
    heavy = ("email", "subprocess", "tempfile", "textwrap", "importlib", "libcst")
    assert not [name for name in names if name.startswith(heavy)]
