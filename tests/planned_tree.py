"""A small tree with a plan made by hand, and ways to break a write of it."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codemods.engine.plan import EditName, FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.write import WriteFailed, write

PATHS = (
    "vllm/v1/worker/block_table.py",
    "vllm/v1/worker/gpu/warmup.py",
    "vllm/v1/worker/gpu_worker.py",
)
CALLS = (
    "open", "close", "read", "write", "pread", "ftruncate", "fsync", "link", "replace", "unlink",
    "fchown", "fchmod", "lstat", "fstat",
)  # fmt: skip


@dataclass(frozen=True)
class PlannedTree:
    root: Path
    plan: Plan

    def path(self, index: int) -> Path:
        return self.root / PATHS[index]

    @property
    def old(self) -> dict[str, bytes]:
        return {change.path: change.before for change in self.plan.changes}

    @property
    def new(self) -> dict[str, bytes]:
        return {change.path: change.after for change in self.plan.changes}

    def content(self) -> dict[str, bytes]:
        """Every file of the tree, so that nothing left lying about escapes a comparison."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def wholly(self) -> str:
        """`old` or `new`, or what is wrong."""
        content = self.content()
        return {True: "old"}.get(content == self.old) or (
            "new" if content == self.new else f"neither: {content}"
        )

    def files(self) -> dict[str, bytes]:
        """The plan's files alone."""
        return {name: (self.root / name).read_bytes() for name in self.old}

    def reset(self) -> None:
        for path in self.root.rglob(".*"):
            path.unlink()
        for name, content in self.old.items():
            (self.root / name).write_bytes(content)


def planned_tree(root: Path, size: int = 64) -> PlannedTree:
    changes = []
    for number, name in enumerate(PATHS):
        before = f"# {number}, line one\r\n".encode() + b"x" * size
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(before)
        changes.append(FileChange(name, before, before + b"\n# added", (EditName.KERNEL,)))
    outcome = Outcome(EditName.KERNEL, Status.EDIT, Reason.ADDED, "added", PATHS[0], 1)
    plan = Plan(Tree(root, "vllm"), (outcome,), tuple(changes), Verdict.FIXABLE)
    return PlannedTree(root, plan)


@contextmanager
def tree_in_memory() -> Iterator[PlannedTree]:
    """For thousands of fsyncs: in memory, where the machine has such a folder."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(dir=memory) as folder:
        yield planned_tree(Path(folder))


def with_path(plan: Plan, index: int, path: str) -> Plan:
    changes = list(plan.changes)
    changes[index] = replace(changes[index], path=path)
    return replace(plan, changes=tuple(changes))


def metadata(path: Path) -> tuple[int, int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), found.st_nlink


def hook(patch: Callable[[Any, str, Any], None], before_call: Callable[[int, str], None]) -> None:
    """Run `before_call(number, name)` before each system call of a write; numbers start at 1."""
    seen = 0

    def hooked(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal seen
            seen += 1
            before_call(seen, name)
            return real(*args, **kwargs)

        return call

    for name in CALLS:
        patch(os, name, hooked(name, getattr(os, name)))
    patch(fcntl, "flock", hooked("flock", fcntl.flock))


def in_child(action: Callable[[], object], before_call: Callable[[int, str], None]) -> int:
    """Run `action` in a forked process with `hook`; its exit status, or minus its last signal.

    0 done, 4 WriteFailed, 5 WriteFailed that says not all is as it was, 130 KeyboardInterrupt, 99
    anything else, which no test expects.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork beside other threads
        child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            hook(setattr, before_call)
            action()
            code = 0
        except WriteFailed as failure:
            code = 4 if failure.restored else 5
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(step: int, number: signal.Signals) -> Callable[[int, str], None]:
    def before_call(seen: int, _name: str) -> None:
        if seen == step:
            os.kill(os.getpid(), number)

    return before_call


def fail_at(step: int, error: int, *, lasting: bool) -> Callable[[int, str], None]:
    def before_call(seen: int, name: str) -> None:
        if name not in ("close", "lstat", "fstat") and (seen >= step if lasting else seen == step):
            raise OSError(error, os.strerror(error))

    return before_call


def kill_after_renames(tree: PlannedTree, renames: int) -> None:
    """Leave the tree as a kill leaves it that comes after so many files were replaced."""
    done = 0

    def before_call(_seen: int, name: str) -> None:
        nonlocal done
        if name == "unlink" or (name == "replace" and done == renames):
            os.kill(os.getpid(), signal.SIGKILL)
        done += name == "replace"

    assert in_child(lambda: write(tree.plan), before_call) == -signal.SIGKILL
    assert len(list(tree.root.rglob("*.old"))) == len(PATHS)


def count_calls(tree: PlannedTree) -> int:
    """How many calls one write of the tree makes; the tree is put back."""
    reading, writing = os.pipe()
    real_write = os.write

    def before_call(_seen: int, _name: str) -> None:
        real_write(writing, b".")

    assert in_child(lambda: write(tree.plan), before_call) == 0
    os.close(writing)
    total = len(os.read(reading, 1 << 16))
    os.close(reading)
    tree.reset()
    return total
