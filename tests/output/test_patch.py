"""Plan -> patch, byte for byte on small files, and as git and GNU patch take it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import codemods.output.landing
import codemods.output.patch
from codemods.cli.main import main
from codemods.engine.checkout import UsageError
from codemods.engine.hunks import hunks, split_lines
from codemods.engine.plan import EditName, FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.output.landing import lands
from codemods.output.mail import NEUTRAL_AUTHOR, SUBJECT, Mail, mail_for
from codemods.output.patch import blob_id, dep3, file_mode, git_mailbox, unified

DATE = datetime(2026, 5, 20, 8, 0, tzinfo=timezone.utc)
MAIL = Mail("Ada Example <ada@example.org>", DATE, "Warm up the kernel")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="GNU patch is not installed")


def plan_of(root: Path, *files: tuple[str, bytes, bytes]) -> Plan:
    """A plan over files that are written to `root` as they are before."""
    for path, before, _ in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(before)
    changes = tuple(
        FileChange(path, before, after, (EditName.KERNEL,)) for path, before, after in files
    )
    outcomes = tuple(
        Outcome(EditName.KERNEL, Status.EDIT, Reason.ADDED, "Adds a name.", change.path, 1)
        for change in changes
    )
    return Plan(Tree(root, "vllm", "0.21.0"), outcomes, changes, Verdict.FIXABLE)


def forms(plan: Plan) -> list[bytes]:
    return [unified(plan), git_mailbox(plan, MAIL), dep3(plan, MAIL)]


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


# --- nothing to say -------------------------------------------------------------------------


def test_an_empty_plan_gives_no_bytes_in_any_form(tmp_path: Path) -> None:
    assert forms(plan_of(tmp_path)) == [b"", b"", b""]


def test_a_file_that_stays_as_it_is_is_not_in_the_patch(tmp_path: Path) -> None:
    assert forms(plan_of(tmp_path, ("a.py", b"x\r\n\fy", b"x\r\n\fy"))) == [b"", b"", b""]


def test_an_unchanged_file_beside_a_changed_one_is_left_out(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("a.py", b"x\n", b"x\n"), ("b.py", b"x\n", b"y\n"))
    for form in forms(plan):
        assert b"a/a.py" not in form
        assert form.count(b"+++ ") == 1


def test_making_a_patch_leaves_the_tree_alone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("vllm/a.py", b"x\n", b"y\n"))
    stamp = (tmp_path / "vllm/a.py").stat()
    assert all(lands(plan, form) for form in forms(plan))
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["vllm", "a.py"]
    assert (tmp_path / "vllm/a.py").read_bytes() == b"x\n"
    assert (tmp_path / "vllm/a.py").stat().st_mtime_ns == stamp.st_mtime_ns


def test_the_same_plan_and_mail_give_the_same_bytes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("b.py", b"x\n", b"y\n"), ("a.py", b"x\n", b"y\n"))
    assert forms(plan) == forms(plan)


def test_equal_versions_have_no_hunks() -> None:
    assert hunks(b"", b"") == ()
    assert hunks(b"x", b"x") == ()
    assert hunks(numbered(9), numbered(9)) == ()


# --- the plain diff -------------------------------------------------------------------------


def test_a_changed_line_has_three_lines_of_context_on_each_side(tmp_path: Path) -> None:
    after = numbered(9).replace(b"line 5\n", b"line five\n")
    assert unified(plan_of(tmp_path, ("vllm/a.py", numbered(9), after))) == (
        b"--- a/vllm/a.py\n"
        b"+++ b/vllm/a.py\n"
        b"@@ -2,7 +2,7 @@\n"
        b" line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n"
    )


def test_appended_lines_follow_the_last_three(tmp_path: Path) -> None:
    assert unified(plan_of(tmp_path, ("a.py", numbered(5), numbered(5) + b"new\n"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -3,3 +3,4 @@\n line 3\n line 4\n line 5\n+new\n"
    )


def test_a_file_of_one_line_has_a_range_without_a_length(tmp_path: Path) -> None:
    assert unified(plan_of(tmp_path, ("a.py", b"x\n", b"y\n"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"
    )


def test_a_missing_final_newline_is_said_on_the_side_that_lacks_it(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("a.py", b"x", b"x\ny\n"), ("b.py", b"x\n", b"y"))
    assert unified(plan) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n"
        b"-x\n\\ No newline at end of file\n+x\n+y\n"
        b"--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n"
        b"-x\n+y\n\\ No newline at end of file\n"
    )


def test_a_missing_final_newline_that_stays_missing_is_said_once(tmp_path: Path) -> None:
    assert unified(plan_of(tmp_path, ("a.py", b"x\nend", b"y\nend"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x\n+y\n end\n\\ No newline at end of file\n"
    )


def test_a_carriage_return_belongs_to_its_line_and_not_to_the_patch(tmp_path: Path) -> None:
    assert unified(plan_of(tmp_path, ("a.py", b"x\r\nk\r\n", b"y\r\nk\r\n"))) == (
        b"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x\r\n+y\r\n k\r\n"
    )


@pytest.mark.parametrize("odd", [b"\r", b"\x0b", b"\f", b"\x1c", b"\x85", "\u2028".encode()])
def test_only_a_line_feed_ends_a_line(odd: bytes) -> None:
    assert split_lines(b"a" + odd + b"b\nc") == [b"a" + odd + b"b\n", b"c"]


def test_changes_six_lines_apart_share_a_hunk_and_seven_do_not() -> None:
    near = numbered(20).replace(b"line 3\n", b"x\n").replace(b"line 10\n", b"y\n")
    far = numbered(20).replace(b"line 3\n", b"x\n").replace(b"line 11\n", b"y\n")
    assert len(hunks(numbered(20), near)) == 1
    assert len(hunks(numbered(20), far)) == 2


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("b/a.py", b"x\n", b"y\n"), ("a.py", b"x\n", b"y\n"))
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
    plan = plan_of(tmp_path, (path, b"x\n", b"y\n"))
    assert unified(plan).startswith(written)
    assert all(lands(plan, form) for form in forms(plan))


# --- the mailbox ----------------------------------------------------------------------------


def test_a_mailbox_has_header_body_diffstat_and_full_index_lines(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("vllm/a.py", b"x\n", b"y\n"))
    header, body = git_mailbox(plan, MAIL).split(b"\n\n", 1)
    assert header == (
        b"From: Ada Example <ada@example.org>\n"
        b"Date: Wed, 20 May 2026 08:00:00 +0000\n"
        b"Subject: Warm up the kernel"
    )
    assert b"- kernel, vllm/a.py: Adds a name.\n" in body
    assert b"vllm-project/vllm #42165" in body
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
    plan = plan_of(tmp_path, ("vllm/a.py", b"x\n", b"y\n"))
    pull = b"https://github.com/vllm-project/vllm/pull/42165"
    fields = b"Origin: other, %b\nBug: %b\nForwarded: %b\nLast-Update: 2026-05-20\n"
    header, body = git_mailbox(plan, MAIL).split(b"\n\n", 1)
    assert dep3(plan, MAIL) == header + b"\n" + fields % (pull, pull, pull) + b"\n" + body


def test_a_mailbox_ends_with_its_last_hunk(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("a.py", b"x\n", b"y\n"))
    assert git_mailbox(plan, MAIL).endswith(b"+y\n")


def test_an_executable_file_keeps_its_mode(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("a.py", b"x\n", b"y\n"))
    (tmp_path / "a.py").chmod(0o755)
    assert b" 100755\n" in git_mailbox(plan, MAIL)
    assert file_mode(tmp_path / "a.py") == "100755"


def test_a_missing_file_has_the_ordinary_mode(tmp_path: Path) -> None:
    assert file_mode(tmp_path / "none.py") == "100644"


def test_the_empty_blob_has_the_name_git_gives_it() -> None:
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_plain_subject_is_written_as_it_is() -> None:
    assert b"Subject: Warm up the kernel\n" in MAIL.header()


def test_other_letters_in_author_and_subject_become_rfc_2047_words() -> None:
    header = Mail("J\u00f6rg M\u00fcller <j@example.org>", DATE, "W\u00e4rme" * 20).header()
    assert header.isascii()
    assert b"From: =?utf-8?" in header
    assert all(len(line) < 79 for line in header.splitlines())


def test_a_subject_cannot_smuggle_a_header_in() -> None:
    header = Mail("A <a@example.org>", DATE, "x\nBcc: b@example.org\r\n\r\ny").header()
    assert header.count(b"\n") == 3


def test_a_body_that_is_not_ascii_says_its_charset(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("a.py", b"x\n", b"y\n"))
    outcome = Outcome(
        EditName.WORKER, Status.EDIT, Reason.ADDED, "Calls it \u2014 once.", "a.py", 1
    )
    plan = Plan(plan.tree, (outcome,), plan.changes, plan.verdict)
    assert b"charset=UTF-8" in git_mailbox(plan, MAIL)
    assert b"charset" not in git_mailbox(plan_of(tmp_path, ("a.py", b"x\n", b"y\n")), MAIL)


# --- where the header's fields come from ----------------------------------------------------


@pytest.fixture
def no_git_settings(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
    }


def test_the_options_come_first(tmp_path: Path, no_git_settings: dict[str, str]) -> None:
    mail = mail_for(
        plan_of(tmp_path),
        author="Ada <ada@example.org>",
        date="2026-05-20T08:00:00Z",
        subject="Fix it",
        environ=no_git_settings | {"SOURCE_DATE_EPOCH": "1", "GIT_AUTHOR_NAME": "Bob"},
    )
    assert mail == Mail("Ada <ada@example.org>", DATE, "Fix it")


def test_then_git_is_asked_and_source_date_epoch_obeyed(
    tmp_path: Path, no_git_settings: dict[str, str]
) -> None:
    config = tmp_path / "config"
    config.write_text("[user]\n\tname = Bob\n\temail = bob@example.org\n")
    environ = no_git_settings | {"SOURCE_DATE_EPOCH": "0", "GIT_CONFIG_GLOBAL": str(config)}
    mail = mail_for(plan_of(tmp_path), environ=environ)
    expected = "Bob <bob@example.org>" if shutil.which("git") else NEUTRAL_AUTHOR
    assert mail == Mail(expected, datetime(1970, 1, 1, tzinfo=timezone.utc), SUBJECT)


@pytest.mark.parametrize("path", ["", "/nonexistent"])
def test_without_git_the_author_is_neutral(tmp_path: Path, path: str) -> None:
    mail = mail_for(plan_of(tmp_path), environ={"PATH": path, "SOURCE_DATE_EPOCH": "0"})
    assert mail.author == NEUTRAL_AUTHOR


def test_half_an_identity_is_none(tmp_path: Path, no_git_settings: dict[str, str]) -> None:
    environ = no_git_settings | {"GIT_AUTHOR_NAME": "Bob"}
    assert mail_for(plan_of(tmp_path), environ=environ).author == NEUTRAL_AUTHOR


def test_a_tree_that_is_gone_gives_the_neutral_author(no_git_settings: dict[str, str]) -> None:
    plan = Plan(Tree(Path("/nonexistent"), "vllm"), (), (), Verdict.ALREADY_FIXED)
    assert mail_for(plan, environ=no_git_settings).author == NEUTRAL_AUTHOR


@pytest.mark.parametrize(
    "date",
    ["2026-05-20T10:00:00+02:00", "Wed, 20 May 2026 08:00:00 +0000", "1779264000", "@1779264000"],
)
def test_a_date_is_read_in_the_forms_that_git_reads(tmp_path: Path, date: str) -> None:
    assert mail_for(plan_of(tmp_path), date=date, environ={}).date == DATE


def test_a_date_keeps_its_zone(tmp_path: Path) -> None:
    mail = mail_for(plan_of(tmp_path), date="2026-05-20T10:00:00+02:00", environ={})
    assert mail.date.utcoffset() == timedelta(hours=2)
    assert b"Date: Wed, 20 May 2026 10:00:00 +0200\n" in mail.header()


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        ({"author": "nobody"}, {}),
        ({"author": "<a@b>"}, {}),
        ({"author": "A <a at b>"}, {}),
        ({"author": "A\nBcc: x <a@b>"}, {}),
        ({"author": "A\udce4 <a@b>"}, {}),
        ({"subject": "W\udce4rme"}, {}),
        ({"date": "yesterday"}, {}),
        ({"date": ""}, {}),
        ({"date": "9" * 30}, {}),
        ({"subject": " \n "}, {}),
        ({}, {"SOURCE_DATE_EPOCH": "-1"}),
        ({}, {"SOURCE_DATE_EPOCH": "1e9"}),
        ({}, {"SOURCE_DATE_EPOCH": ""}),
    ],
)
def test_a_bad_field_is_refused_in_one_line(
    tmp_path: Path, options: dict[str, str], environ: dict[str, str]
) -> None:
    with pytest.raises(UsageError) as caught:
        mail_for(plan_of(tmp_path), **options, environ=environ)
    assert "\n" not in str(caught.value)


def test_an_address_that_is_not_ascii_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Mail("A <a@ex\u00e4mple.org>", DATE, "x").header()


# --- the self-check -------------------------------------------------------------------------

FILES = [
    ("vllm/plain.py", numbered(30), numbered(30).replace(b"line 9\n", b"x\n") + b"y\n"),
    ("vllm/crlf.py", b"a\r\nb\r\n", b"a\r\nc\r\nb\r\n"),
    ("vllm/latin.py", b"# \xe9\nx\n", b"# \xe9\ny\n"),
    ("vllm/no end.py", b"x\ny", b"x\nz\ny"),
    ("vllm/empty.py", b"x\n", b""),
    ("vllm/was-empty.py", b"", b"x\n"),
    ("vllm/minus.py", b"-- a\n++ b\n@@ -1 +1 @@\n", b"-- a\n++ c\n@@ -1 +1 @@\n"),
]


@pytest.fixture(params=["git", "strict"])
def judge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "strict":
        monkeypatch.setattr(codemods.output.landing.shutil, "which", lambda name: None)
    elif shutil.which("git") is None:
        pytest.skip("git is not installed")


@pytest.mark.usefixtures("judge")
def test_every_form_lands(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *FILES)
    for form in forms(plan):
        assert lands(plan, form), form.decode("latin-1")


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda patch: b"",
        lambda patch: patch.replace(b" line 8\n", b" line eight\n"),
        lambda patch: patch.replace(b"+x\n", b"+z\n", 1),
        lambda patch: patch[: patch.index(b"+y\n")],
        lambda patch: patch.replace(b"\r\n", b"\n"),
        lambda patch: patch[: patch.rindex(b"--- ")],
    ],
    ids=["empty", "context", "added", "cut", "line-ends", "file-lost"],
)
def test_a_spoilt_patch_does_not_land(tmp_path: Path, spoil: object) -> None:
    plan = plan_of(tmp_path, *FILES)
    assert callable(spoil)
    assert not lands(plan, spoil(unified(plan)))


@pytest.mark.usefixtures("judge")
def test_only_the_empty_patch_lands_an_empty_plan(tmp_path: Path) -> None:
    assert lands(plan_of(tmp_path), b"")
    assert not lands(plan_of(tmp_path), b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n")


@needs_git
def test_a_hooks_environment_and_the_users_settings_have_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[core]\n\tautocrlf = true\n[apply]\n\twhitespace = fix\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    subprocess.run(["git", "init", "-q", tmp_path], check=True, env={"PATH": os.environ["PATH"]})
    plan = plan_of(tmp_path / "tree", ("a.py", b"x\n", b"y  \r\n"))
    assert all(lands(plan, form) for form in forms(plan))


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
    fixture = Path(__file__).resolve().parents[1] / "fixtures/forks/base"
    out = tmp_path / "patch"
    assert main(["diff", str(fixture), "--format", form, "-o", str(out)]) == 3
    assert not out.exists()
    assert main(["diff", str(fixture), "--format", form]) == 3
    assert capfd.readouterr().out == ""


lines = st.lists(
    st.sampled_from([b"", b"a", b"b", b"-- a", b"\f\r", b"\xff", b"diff -"]), max_size=12
)
texts = st.builds(lambda parts, end: b"\n".join(parts) + end, lines, st.sampled_from([b"", b"\n"]))


@settings(max_examples=300, deadline=None)
@given(before=texts, after=texts)
def test_hunks_lead_from_any_text_to_any_other(before: bytes, after: bytes) -> None:
    plan = Plan(
        Tree(Path("/nonexistent"), "."),
        (),
        (FileChange("a.py", before, after, ()),),
        Verdict.FIXABLE,
    )
    changes = [change for change in plan.changes if change.before != change.after]
    for form in forms(plan):
        assert form == b"" if not changes else codemods.landing._lands_strictly(changes, form)


# --- git and GNU patch, when they are there -------------------------------------------------


@needs_git
def test_the_diffstat_and_the_index_lines_are_gits_own(tmp_path: Path) -> None:
    long = numbered(200)
    files = [
        ("vllm/v1/worker/a.py", b"", long),
        ("b.py", long, long.replace(b"1", b"one")),
        ("c.py", b"x\n", b"y\n"),
    ]
    plan = plan_of(tmp_path, *files)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    for path, _, after in files:
        (tmp_path / path).write_bytes(after)
    command = [*git, "diff", "--stat=72", "--patch", "--full-index", "--no-color"]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    ours = git_mailbox(plan, MAIL).split(b"---\n", 1)[1]
    assert ours.split(b"\n\n", 1)[0] == shown.split(b"\n\n", 1)[0]
    for line in shown.splitlines():
        if line.startswith((b"diff --git", b"index ")):
            assert line in ours.splitlines()


@needs_git
def test_git_am_restores_author_date_and_subject(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ("a.py", b"x\n", b"y\n"))
    author, subject = (
        "J\u00f6rg M\u00fcller, Dr. rer. nat <j@example.org>",
        "W\u00e4rme den Kernel auf: " * 6,
    )
    when = DATE.astimezone(timezone(timedelta(hours=-3, minutes=-30)))
    patch = dep3(plan, Mail(author, when, subject))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    subprocess.run([*git, "am", "-q"], input=patch, check=True)
    shown = subprocess.run(
        [*git, "log", "-1", "--format=%an <%ae>%n%aI%n%s"], capture_output=True, check=True
    ).stdout.decode()
    assert shown.split("\n")[:3] == [author, "2026-05-20T04:30:00-03:30", subject.strip()]


@needs_patch
def test_gnu_patch_takes_every_form_without_a_word(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *FILES)
    for number, form in enumerate(forms(plan)):
        copy = tmp_path / f"copy{number}"
        plan_of(copy, *FILES)
        subprocess.run(
            ["patch", "-s", "-p1", "-F", "0"], input=form, cwd=copy, check=True, capture_output=True
        )
        for path, _, after in FILES:
            found = (copy / path).read_bytes() if (copy / path).exists() else b""
            assert found == after


# --- speed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["patch", "hunks", "mail"])
def test_a_plain_diff_imports_nothing_heavy(module: str) -> None:
    source = Path(codemods.output.landing.__file__).with_name(f"{module}.py").read_text()
    top = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in top
    }
    heavy = ("email", "subprocess", "tempfile", "textwrap", "importlib", "libcst")
    assert not [name for name in names if name.startswith(heavy)]
