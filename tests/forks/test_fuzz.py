"""Trees damaged at random: none is lost, none holds the tool up, and every end is a documented one.

40 trees in the quick tests, the same ones each time; FORKS_PROFILE=search draws 3,000 new ones.
"""

from __future__ import annotations

import json
import os
import random
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import trees
from .profiles import FRESH
from .trees import BLOCK_TABLE, WARMUP, WORKER

BATCHES, SIZE = (120, 25) if FRESH else (4, 10)
SECONDS = 10  # for one command
KILOBYTES = 1_500_000  # of memory, for all commands of a batch
VERBS = ("check", "diff", "apply", "check")
CODES = {"check": {0, 1, 2, 3}, "diff": {0, 2, 3}, "apply": {0, 2, 3}}
Damage = Callable[[random.Random, Path], object]

# The commands of one batch in one process, since most of a command is its start.
CALLER = """
import contextlib, io, json, resource, sys, time
from codemods.cli.main import main

for line in sys.stdin:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    start = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(json.loads(line))
    seconds = time.monotonic() - start
    err.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([code, seconds, peak, err.buffer.getvalue().decode()]), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """A command's exit code, how long it took, the process's most memory so far, its stderr."""

    code: int
    seconds: float
    peak: int
    err: str


def flipped(draw: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 20)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)


def cut(draw: random.Random, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))])


def lines_moved(draw: random.Random, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for _ in range(draw.randint(1, 6)):
        at, to = draw.randrange(len(lines)), draw.randrange(len(lines))
        change = draw.choice(("swap", "copy", "drop"))
        if change == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        elif change == "copy":
            lines.insert(to, lines[at])
        elif len(lines) > 1:
            del lines[at]
    path.write_bytes(b"".join(lines))


ODD = (
    b"\0", b"\r", b"\x0c", b"\xef\xbb\xbf", b"\\", b'"""', b"(" * 300, b"\t", b"\x1b[2J", b"\xff",
    "\N{RIGHT-TO-LEFT OVERRIDE}".encode(), b"async ", b"lambda: ", b"if x:\n", b"*" * 9_999,
    b"# coding: utf-16\n", b"# coding: rot13\n", b"<<<<<<< ours\n", b"\n" * 5_000,
    b"x = 1\n" * 20_000,
)  # fmt: skip


def inserted(draw: random.Random, path: Path) -> None:
    data = path.read_bytes()
    at = draw.randrange(len(data) + 1)
    path.write_bytes(data[:at] + draw.choice(ODD) + data[at:])


def recoded(draw: random.Random, path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    coding = draw.choice(("utf-8-sig", "utf-16", "latin-1", "utf-7", "cp037"))
    path.write_bytes(
        text.replace("\n", draw.choice(("\n", "\r\n", "\r"))).encode(coding, "replace")
    )


def replaced(draw: random.Random, path: Path) -> None:
    path.unlink()
    kind = draw.choice(("fifo", "folder", "nowhere", "circle", "zero", "outside", "sparse", "gone"))
    links = {
        "nowhere": "none.py",
        "circle": path.name,
        "zero": "/dev/zero",
        "outside": "/etc/passwd",
    }
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(draw.choice((0, 1 << 20, 9 << 20, 1 << 40)))
    elif kind in links:
        path.symlink_to(links[kind])


def unreadable(draw: random.Random, path: Path) -> None:
    path.chmod(draw.choice((0o000, 0o200, 0o444, 0o777, 0o4755)))


PLACES = (
    ".git", ".git/HEAD", ".git/index", ".git/config", ".git/refs", ".git/packed-refs",
    "vllm/_version.py", "PKG-INFO", "ruff.toml", "tests", "vllm-1.dist-info", "a" * 250,
)  # fmt: skip


def around(draw: random.Random, path: Path) -> None:
    """Something odd beside the file, or in a repository around it."""
    root = next(folder for folder in path.parents if (folder / ".root").exists())
    where = draw.choice(PLACES)
    odd = root / where
    if os.path.lexists(odd) or (os.path.lexists(odd.parent) and not odd.parent.is_dir()):
        return
    odd.parent.mkdir(exist_ok=True)
    kind = draw.choice(("fifo", "folder", "noise", "zero", "up"))
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    elif kind == "noise":
        odd.write_bytes(draw.randbytes(200))
    else:
        odd.symlink_to({"zero": "/dev/zero", "up": ".."}[kind])


DAMAGES: tuple[Damage, ...] = (
    flipped, cut, lines_moved, lines_moved, inserted, inserted, recoded, replaced, unreadable,
    around, around,
)  # fmt: skip


def damaged(draw: random.Random, root: Path) -> None:
    """Write a fork's tree, and damage one to three of its files."""
    name = draw.choice([name for name in trees.names() if name != "14-no-block-table"])
    tree = trees.fork(name).tree
    tree.write_to(root)
    (root / ".root").touch()
    for _ in range(draw.randint(1, 3)):
        path = root / tree.package / draw.choice((BLOCK_TABLE, WORKER, WARMUP))
        if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size < 1 << 20:
            draw.choice(DAMAGES)(draw, path)


def snapshot(root: Path) -> dict[str, tuple[int, bytes | str]]:
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content: bytes | str = ""
        if stat.S_ISLNK(mode):
            content = os.readlink(path)
        elif stat.S_ISREG(mode) and path.lstat().st_size < 1 << 22:
            content = path.read_bytes()
        found[path.relative_to(root).as_posix()] = (mode, content)
    return found


class Tool:
    """The command in a process of its own, one call after another."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CALLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        resource.prlimit(self.process.pid, resource.RLIMIT_AS, (3 << 30, 3 << 30))

    def run(self, *arguments: str) -> Ran:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the process ended with status {self.process.wait()}"
        return Ran(*json.loads(line))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_damaged_tree_is_lost_or_holds_the_tool_up(batch: int, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32) if FRESH else batch
    tool = Tool()
    try:
        for number in range(SIZE):
            root = tmp_path / str(number)
            damaged(random.Random(f"{seed} {number}"), root)
            judge(tool, root, f"seed {seed}, tree {number}")
    finally:
        tool.end()


def judge(tool: Tool, root: Path, which: str) -> None:
    """Run the verbs on a tree, each of which must end well, and write all or nothing."""
    applied = False
    for verb in VERBS:
        before = snapshot(root)
        ran = (
            tool.run(verb, str(root), "--allow-dirty")
            if verb == "apply"
            else tool.run(verb, str(root))
        )
        after = snapshot(root)
        assert ran.code in CODES[verb], (which, verb, ran)
        assert ran.seconds < SECONDS, (which, verb, ran)
        assert ran.peak < KILOBYTES, (which, verb, ran)
        assert "Traceback" not in ran.err, (which, verb, ran)
        assert " at " not in ran.err or "Error" not in ran.err, (which, verb, ran)
        assert all(line.isprintable() for line in ran.err.splitlines()), (which, verb, ran)
        if verb != "apply" or ran.code != 0:
            assert after == before, (which, verb, ran)
        else:
            changed = [name for name in after if after[name] != before.get(name)]
            assert set(after) == set(before), which
            assert all(after[name][0] == before[name][0] for name in changed), which
            applied = True
        if applied and verb == "check":
            assert ran.code == 0, (which, verb, ran)
