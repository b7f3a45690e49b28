"""The faults that `git diff --check` finds in what a change adds, and no others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codemods.engine.plan import FileChange
from codemods.prove.white_space import complaints

CASES = {
    "nothing": (b"a\n", b"a\nb\n"),
    "was there": (b"a \n", b"a \nb\n"),
    "trailing space": (b"a\n", b"a\nb \n"),
    "trailing tab": (b"a\n", b"a\nb\t\n"),
    "only spaces": (b"a\n", b"a\n  \nb\n"),
    "carriage return": (b"a\n", b"a\nb\r\n"),
    "carriage returns as before": (b"a\r\n", b"a\r\nb\r\n"),
    "space before a return": (b"a\r\n", b"a\r\nb \r\n"),
    "space before a tab": (b"a\n", b"a\n \tb\n"),
    "tab before a space": (b"a\n", b"a\n\t b\n"),
    "space before a tab inside": (b"a\n", b"a\nb \tc\n"),
    "blank line at the end": (b"a\n", b"a\n\n"),
    "blank line at the end as before": (b"a\n\n", b"b\na\n\n"),
    "blank line inside": (b"a\nb\n", b"a\n\nb\n"),
    "no line end": (b"a\n", b"a\nb"),
    "conflict mark": (b"a\n", b"a\n<<<<<<< ours\n"),
    "no conflict mark": (b"a\n", b"a\n<<<<<<<<\n"),
    "form feed": (b"a\n", b"a\n\x0c\nb\n"),
    "new file": (b"", b"a\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_git_finds_the_same(name: str, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    before, after = CASES[name]
    (tmp_path / "before").write_bytes(before)
    (tmp_path / "after").write_bytes(after)
    ends = ["-c", "core.whitespace=cr-at-eol"] if b"\r\n" in before else []
    ran = subprocess.run(
        ["git", *ends, "diff", "--no-index", "--check", "before", "after"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        check=False,
    )
    lines = ran.stdout.decode().splitlines()
    theirs = {int(line.split(":")[1]) for line in lines if line.startswith("after:")}
    ours = {int(line.split(":")[1]) for line in complaints(FileChange("x", before, after, ()))}
    assert ours == theirs
