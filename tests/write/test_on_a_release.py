"""`apply` on a real release, stopped at each of its system calls.

The quick test stops the write alone, at a quarter of its calls. With FORKS_PROFILE=search, strace
stops the whole command before each call that changes a file, and lets each such call fail.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import codemods.write
from codemods.cli.main import main
from codemods.engine.plan import FileChange
from codemods.release import UnreachableError, fetch
from codemods.write import remove_leftovers, write
from tests.write.planned_tree import count_calls, folder_in_memory, in_child, kill_at

pytestmark = pytest.mark.network

SEARCH = os.environ.get("FORKS_PROFILE") == "search"
search = pytest.mark.skipif(not SEARCH, reason="some minutes: only in make search")
CHANGING = (
    "flock", "write", "fchmod", "fchown", "fsetxattr", "fsync", "link", "linkat",
    "rename", "renameat", "renameat2", "unlink", "unlinkat",
)  # fmt: skip


@dataclass(frozen=True)
class Release:
    """A copy of a release; `changes` are in the order in which `apply` writes them."""

    root: Path
    changes: tuple[FileChange, ...]

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }

    def done(self) -> tuple[bool, ...]:
        """Which files are rewritten; each must be old or new."""
        found = [(self.root / change.path).read_bytes() for change in self.changes]
        for content, change in zip(found, self.changes, strict=True):
            assert content in (change.before, change.after)
        return tuple(
            content == change.after for content, change in zip(found, self.changes, strict=True)
        )

    def rest(self) -> list[FileChange]:
        return [c for c, done in zip(self.changes, self.done(), strict=True) if not done]

    def reset(self) -> None:
        for path in self.root.rglob(".vllm-codemods-*"):
            path.unlink()
        for change in self.changes:
            (self.root / change.path).write_bytes(change.before)

    @property
    def prefixes(self) -> list[tuple[bool, ...]]:
        count = len(self.changes)
        return [(True,) * done + (False,) * (count - done) for done in range(count + 1)]


@pytest.fixture(scope="module")
def planned() -> Iterator[Release]:
    try:
        cached = fetch("0.21.0", sdist=True)  # with the tests that a wheel has not
    except UnreachableError as error:
        pytest.skip(str(error))
    given: list[FileChange] = []
    with folder_in_memory() as folder:
        root = folder / "vllm-0.21.0"
        shutil.copytree(cached, root)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codemods.write, "write", lambda _root, changes: given.extend(changes))
            assert main(["apply", str(root)]) == 0
        assert len(given) == 4
        yield Release(root, tuple(given))


@pytest.fixture
def release(planned: Release) -> Release:
    planned.reset()
    return planned


def broken_imports(release: Release) -> list[str]:
    """Names that one changed module imports from another and that are not there."""
    modules = {
        change.path.removesuffix(".py").replace("/", "."): ast.parse(
            (release.root / change.path).read_bytes()
        )
        for change in release.changes
    }
    return [
        f"{name}: {alias.name} of {source}"
        for name, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (source := _source(node, name)) in modules
        for alias in node.names
        if alias.name not in _bound(modules[source])
    ]


def _source(node: ast.ImportFrom, importer: str) -> str:
    """The module that a statement of `importer` imports from."""
    package = importer.split(".")[: -node.level] if node.level else []
    return ".".join([*package, *filter(None, [node.module])])


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def test_the_worker_is_renamed_last(release: Release) -> None:
    names = [Path(change.path).name for change in release.changes]
    assert names[:2] == ["block_table.py", "warmup.py"]
    assert names[-1] == "gpu_worker.py"


def test_every_prefix_imports_and_is_fixable_and_completed_by_the_command(
    release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    for prefix in release.prefixes:
        release.reset()
        for change, done in zip(release.changes, prefix, strict=True):
            if done:
                (release.root / change.path).write_bytes(change.after)
        left = release.files()
        assert broken_imports(release) == []
        assert main(["check", str(release.root)]) == (0 if all(prefix) else 1)
        assert ("fixable" in capsys.readouterr().out) is not all(prefix)
        assert release.files() == left
        assert main(["apply", str(release.root)]) == 0
        assert release.files() == {**left, **{c.path: c.after for c in release.changes}}


def test_another_order_would_leave_a_tree_that_does_not_import(release: Release) -> None:
    worker = release.changes[-1]
    (release.root / worker.path).write_bytes(worker.after)
    assert broken_imports(release) != []


def test_a_kill_before_any_call_leaves_a_prefix_and_nothing_that_stays(release: Release) -> None:
    unchanged = release.files()
    fixed = {**unchanged, **{change.path: change.after for change in release.changes}}
    names = [change.path for change in release.changes]

    def apply() -> None:
        remove_leftovers(release.root, names)
        write(release.root, release.rest())

    seen = set()
    for step in range(1, count_calls(apply) + 1, 1 if SEARCH else 4):
        release.reset()
        assert in_child(apply, kill_at(step, signal.SIGKILL)).code == -signal.SIGKILL
        seen.add(release.done())
        apply()
        assert release.files() == fixed
    assert seen == set(release.prefixes)


def strace(release: Release, *options: str) -> subprocess.CompletedProcess[str]:
    """`apply` under strace; only its own thread is traced."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    command = [sys.executable, "-m", "codemods", "apply", str(release.root)]
    return subprocess.run(
        [program, "-e", f"trace={','.join(CHANGING)}", *options, *command],
        capture_output=True,
        text=True,
        check=False,
    )


def calls_of(release: Release) -> list[tuple[str, int]]:
    """Each changing call of one apply: its name, and the how manieth of that name it is."""
    ran = strace(release)
    if ran.returncode:
        pytest.skip(f"strace does not work here: {ran.stderr.splitlines()[-1]}")
    counts: Counter[str] = Counter()
    calls = []
    for name in re.findall(r"^(\w+)\(", ran.stderr, re.M):
        counts[name] += 1
        calls.append((name, counts[name]))
    assert counts["rename"] + counts["renameat"] + counts["renameat2"] == len(release.changes)
    release.reset()
    return calls


@search
def test_the_command_killed_before_any_changing_call_is_completed_by_the_next(
    release: Release,
) -> None:
    fixed = {**release.files(), **{change.path: change.after for change in release.changes}}
    seen = set()
    for name, nth in calls_of(release):
        release.reset()
        ran = strace(release, "-e", f"inject={name}:signal=SIGKILL:when={nth}")
        assert ran.returncode != 0
        assert release.done() in release.prefixes, (name, nth)
        seen.add(release.done())
        assert main(["apply", str(release.root)]) == 0
        assert release.files() == fixed, (name, nth)
    assert seen == set(release.prefixes)


@search
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS"])
def test_the_command_in_which_a_changing_call_fails_says_what_it_left(
    release: Release, error: str
) -> None:
    fixed = {**release.files(), **{change.path: change.after for change in release.changes}}
    for name, nth in calls_of(release):
        release.reset()
        ran = strace(release, "-e", f"inject={name}:error={error}:when={nth}")
        done = release.done()
        assert "Traceback" not in ran.stderr
        if ran.returncode == 4:
            assert not any(done), (name, nth)
            assert "; nothing was written" in ran.stderr or "; every file is restored" in ran.stderr
        else:  # 2: the table could not be printed
            assert ran.returncode in (0, 2), (name, nth)
            assert all(done)
        assert main(["apply", str(release.root)]) == 0
        assert release.files() == fixed, (name, nth)
