"""Does a patch, applied to a copy of the tree's files, give the bytes that `apply` writes?

git judges where it is installed; elsewhere a strict applier does, which takes no line that is not
where the hunk says it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from codemods.hunks import split_lines
from codemods.outcome import FileChange, Plan

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def lands(plan: Plan, patch: bytes) -> bool:
    """Whether `patch` turns the plan's files from before to after, to the byte."""
    changes = [change for change in plan.changes if change.before != change.after]
    if not changes:
        return patch == b""
    git = shutil.which("git")
    if git is None:
        return _lands_strictly(changes, patch)
    return _lands_by_git(git, changes, patch)


def _lands_by_git(git: str, changes: list[FileChange], patch: bytes) -> bool:
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as folder:
        scratch = Path(folder).resolve() / "tree"
        for change in changes:
            target = scratch / change.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(change.before)
        try:
            applied = subprocess.run(
                [git, "apply", "-p1", "--whitespace=nowarn", "-"],
                cwd=scratch,
                env=_quiet_environment(scratch.parent),
                input=patch,
                capture_output=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return applied.returncode == 0 and all(
            (scratch / change.path).read_bytes() == change.after for change in changes
        )


def _quiet_environment(ceiling: Path) -> dict[str, str]:
    """No repository around the scratch copy and no user's settings may have a say.

    In a repository that holds the folder `git apply` skips every path and exits 0; a hook's
    GIT_DIR does the same; `core.autocrlf` changes line ends.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CEILING_DIRECTORIES": str(ceiling),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _lands_strictly(changes: list[FileChange], patch: bytes) -> bool:
    """Each file's section begins at `--- `; hunk lines are counted, so content cannot mislead."""
    sections: list[list[bytes]] = []
    lines = split_lines(patch)
    at = 0
    while at < len(lines):
        if lines[at].startswith(b"--- "):
            sections.append([])
            at += 2
            continue
        found = _HUNK.match(lines[at])
        if found is None or not sections:
            at += 1
            continue
        end = _hunk_end(lines, at + 1, int(found[2] or 1), int(found[4] or 1))
        sections[-1] += lines[at:end]
        at = end
    if len(sections) != len(changes):
        return False
    ordered = sorted(changes, key=lambda change: change.path)
    return all(
        _patched(change.before, section) == change.after
        for change, section in zip(ordered, sections, strict=True)
    )


def _hunk_end(lines: list[bytes], at: int, before: int, after: int) -> int:
    """The index behind a hunk's last line, counted out from its heading."""
    while at < len(lines) and (before > 0 or after > 0 or lines[at].startswith(b"\\")):
        before -= lines[at][:1] in (b" ", b"-")
        after -= lines[at][:1] in (b" ", b"+")
        at += 1
    return at


def _patched(before: bytes, section: list[bytes]) -> bytes | None:
    """`before` with a section's hunks applied; None where a line is not as the hunk has it."""
    old = split_lines(before)
    result: list[bytes] = []
    at = 0
    for number, line in enumerate(section):
        if found := _HUNK.match(line):
            start = int(found[1]) - (found[2] != b"0")
            result += old[at:start]
            at = start
            continue
        if line.startswith(b"\\"):
            continue
        unended = section[number + 1 : number + 2]
        text = line[1:-1] if unended and unended[0].startswith(b"\\") else line[1:]
        if not line.startswith(b"+"):
            if old[at : at + 1] != [text]:
                return None
            at += 1
        if not line.startswith(b"-"):
            result.append(text)
    return b"".join(result + old[at:])
