"""A small tree with the changes of a plan made by hand, and ways to break a write of it."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codemods.engine.plan import FileChange
from codemods.write import WriteFailed, remove_leftovers, write

# In the order of the write, in which each file may import those before it.
ADDED = {
    "vllm/v1/worker/block_table.py": "KERNEL = 1",
    "vllm/v1/worker/gpu/warmup.py": "from vllm.v1.worker.block_table import KERNEL as warm_up",
    "vllm/v1/worker/gpu_worker.py": "from vllm.v1.worker.gpu.warmup import warm_up",
}
PATHS = tuple(ADDED)
CALLS = (
    "open", "fdopen", "close", "write", "fsync", "link", "replace", "unlink",
    "fchown", "fchmod", "lstat", "fstat",
)  # fmt: skip


@dataclass(frozen=True)
class PlannedTree:
    root: Path
    changes: tuple[FileChange, ...]

    def path(self, index: int) -> Path:
        return self.root / PATHS[index]

    @property
    def prefixes(self) -> list[dict[str, bytes]]:
        """The files before the write, after its first rename, and so on."""
        return [
            {c.path: c.after if n < done else c.before for n, c in enumerate(self.changes)}
            for done in range(len(self.changes) + 1)
        ]

    @property
    def old(self) -> dict[str, bytes]:
        return self.prefixes[0]

    @property
    def new(self) -> dict[str, bytes]:
        return self.prefixes[-1]

    def content(self) -> dict[str, bytes]:
        """Every file of the tree, so that a comparison sees what was left behind."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def files(self) -> dict[str, bytes]:
        """The plan's files alone."""
        return {name: (self.root / name).read_bytes() for name in PATHS}

    def temporaries(self) -> list[Path]:
        return sorted(self.root.rglob(".vllm-codemods-*.tmp"))

    def write(self) -> None:
        write(self.root, self.changes)

    def apply(self) -> None:
        """What the command does: plan what is still to do, clean up, write."""
        files = self.files()
        remove_leftovers(self.root, PATHS)
        write(self.root, [change for change in self.changes if files[change.path] != change.after])

    def reset(self) -> None:
        for path in self.temporaries():
            path.unlink()
        for name, content in self.old.items():
            (self.root / name).write_bytes(content)


def planned_tree(root: Path, size: int = 64) -> PlannedTree:
    changes = []
    for number, (name, added) in enumerate(ADDED.items()):
        before = f"# {number}, line one\r\n#".encode() + b"x" * size
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(before)
        changes.append(FileChange(name, before, before + b"\r\n" + added.encode(), ()))
    return PlannedTree(root, tuple(changes))


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """For thousands of fsyncs: in memory, where the machine has such a folder."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def metadata(path: Path) -> tuple[int, int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), found.st_nlink


BeforeCall = Callable[[int, str], None]


def hook(patch: Callable[[Any, str, Any], None], before_call: BeforeCall) -> None:
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


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit status, or minus its last signal, and what WriteFailed said.

    0 done, 4 WriteFailed, 130 KeyboardInterrupt, 99 anything else, which no test expects.
    """

    code: int
    line: str = ""

    def files(self, tree: PlannedTree) -> dict[str, bytes]:
        """What the files of the tree must hold if what was said is true."""
        if self.code == 0:
            return tree.new
        if "; nothing was written" in self.line or "; every file is restored" in self.line:
            return tree.old
        _, _, names = self.line.partition("; still rewritten: ")
        done = names.partition(";")[0].split(", ")
        assert set(done) <= set(PATHS), self
        return {name: (tree.new if name in done else tree.old)[name] for name in PATHS}


def in_child(action: Callable[[], object], before_call: BeforeCall | None = None) -> Ended:
    """Run `action` in a forked process with `hook`."""
    reading, writing = os.pipe()
    real_write = os.write
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork beside other threads
        child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            if before_call:
                hook(setattr, before_call)
            action()
            code = 0
        except WriteFailed as failure:
            real_write(writing, str(failure).encode())
            code = 4
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        line = pipe.read()
    return Ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), line)


def kill_at(step: int, number: int) -> BeforeCall:
    def before_call(seen: int, _name: str) -> None:
        if seen == step:
            os.kill(os.getpid(), number)

    return before_call


def fail_at(step: int, error: int, *, lasting: bool = False) -> BeforeCall:
    def before_call(seen: int, _name: str) -> None:
        if seen == step or (lasting and seen > step):
            raise OSError(error, os.strerror(error))

    return before_call


def fail_call(wanted: str, error: int, *, nth: int = 0) -> BeforeCall:
    """Fail every call of that name, or only the nth."""
    count = 0

    def before_call(_seen: int, name: str) -> None:
        nonlocal count
        count += name == wanted
        if name == wanted and nth in (0, count):
            raise OSError(error, os.strerror(error))

    return before_call


def count_calls(action: Callable[[], object]) -> int:
    """How many calls the action makes, in a child."""
    reading, writing = os.pipe()
    real_write = os.write
    assert in_child(action, lambda _seen, _name: real_write(writing, b".") and None).code == 0
    os.close(writing)
    with open(reading, "rb") as pipe:
        return len(pipe.read())
