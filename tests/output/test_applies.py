"""Whether a patch gives the bytes of apply: as the tool judges it, and as git does."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemods.engine.plan import FileChange
from codemods.output.applies import applies_exactly
from codemods.output.patch import unified
from tests.output.forms import FILES, every_form, plan_over
from tests.plans import plan_of

Judge = Callable[[Sequence[FileChange], bytes], bool]


@pytest.fixture(params=["the tool", "git"])
def judge(request: pytest.FixtureRequest, tmp_path: Path) -> Judge:
    if request.param == "the tool":
        return applies_exactly
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git_judges(changes: Sequence[FileChange], patch: bytes) -> bool:
        """`git apply` on a copy, with no repository around it and no settings."""
        scratch = tmp_path / "copy"
        shutil.rmtree(scratch, ignore_errors=True)
        for change in changes:
            (scratch / change.path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / change.path).write_bytes(change.before)
        done = subprocess.run(
            ["git", "apply", "-p1", "--whitespace=nowarn", "-"],
            cwd=scratch,
            env={
                "PATH": os.environ["PATH"],
                "GIT_CEILING_DIRECTORIES": str(tmp_path),
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
            },
            input=patch,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0 and all(
            (scratch / change.path).read_bytes() == change.after for change in changes
        )

    return git_judges


def test_every_form_applies(judge: Judge, tmp_path: Path) -> None:
    plan = plan_over(tmp_path / "tree", *FILES)
    for form in every_form(plan):
        assert judge(plan.changes, form), form.decode("latin-1")


@pytest.mark.parametrize(
    "path",
    ["v llm/a.py", "vllm/\u00e4.py", 'v"l\\lm.py', "v\tl\nm.py", "v\x7f.py", "v\udce4.py"],
)
def test_a_file_of_an_odd_name_applies(judge: Judge, path: str, tmp_path: Path) -> None:
    plan = plan_over(tmp_path / "tree", (path, b"x\n", b"y\n"))
    assert all(judge(plan.changes, form) for form in every_form(plan))


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
def test_a_corrupted_patch_does_not_land(
    judge: Judge, spoil: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    plan = plan_over(tmp_path / "tree", *FILES)
    assert not judge(plan.changes, spoil(unified(plan)))


def test_only_the_empty_patch_applies_where_nothing_changes() -> None:
    assert applies_exactly((), b"")
    assert applies_exactly((FileChange("a.py", b"x", b"x", ()),), b"")
    assert not applies_exactly((), b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n")


lines = st.lists(
    st.sampled_from([b"", b"a", b"b", b"-- a", b"\f\r", b"\xff", b"diff -"]), max_size=12
)
texts = st.builds(lambda parts, end: b"\n".join(parts) + end, lines, st.sampled_from([b"", b"\n"]))


@settings(max_examples=300, deadline=None)
@given(before=texts, after=texts)
def test_hunks_lead_from_any_text_to_any_other(before: bytes, after: bytes) -> None:
    change = FileChange("a.py", before, after, ())
    for form in every_form(plan_of(changes=[change])):
        assert form == b"" if before == after else applies_exactly((change,), form)
