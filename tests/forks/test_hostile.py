"""Trees that are broken or meant to break: one clear line, bounded time and memory, no change."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.forks import trees
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER

SECONDS = 60
MEMORY = 3 << 30  # bytes of address space; LibCST's tree of a 5 MB file takes most of it
PLAIN = "00-monitor-in-triton-utils"
FILES = (BLOCK_TABLE, WORKER, WARMUP)
VERBS = ("check", "diff", "apply")

CALLER = """
import io, json, sys
from codemods.cli.main import main

ran = []
for arguments in json.loads(sys.argv[1]):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    kept, (sys.stdout, sys.stderr) = (sys.stdout, sys.stderr), (out, err)
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.stdout, sys.stderr = kept
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    ran.append([code, *texts])
print(json.dumps(ran))
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run(*arguments: str, folder: Path | None = None) -> Ran:
    """The tool as a user starts it, under limits that a hang or a flood would hit."""
    return runs([list(arguments)], folder)[0]


def runs(calls: list[list[str]], folder: Path | None = None) -> list[Ran]:
    """Several calls of the tool in one process, since most of a call is its start."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = subprocess.run(
        [sys.executable, "-c", CALLER, json.dumps(calls)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        preexec_fn=limit,
    )
    assert done.returncode == 0, done.stderr.decode()
    ran = [Ran(*one) for one in json.loads(done.stdout)]
    for one in ran:
        assert "Traceback" not in one.out + one.err, one.err
        assert one.code in (0, 1, 2, 3), one
    return ran


def snapshot(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every name under the root with its mode, and its bytes or its link's target."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.relative_to(root).parts:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[str(path)] = (mode, os.readlink(path))
        else:
            found[str(path)] = (mode, path.read_bytes() if stat.S_ISREG(mode) else "")
    return found


def plain(root: Path, name: str = PLAIN) -> Path:
    return trees.fork(name).tree.write_to(root)


def every_verb(root: Path) -> list[Ran]:
    """check, diff and apply, none of which may touch a tree that is refused."""
    before = snapshot(root)
    ran = runs([[verb, str(root)] for verb in VERBS])
    assert snapshot(root) == before
    return ran


def text(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere.py")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def prepend(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data + path.read_bytes())


REFUSED: dict[str, Callable[[Path], object]] = {
    "deeply nested brackets": prepend(b"x = " + b"(" * 5000 + b")" * 5000 + b"\n"),
    "deeply nested blocks": prepend(
        b"".join(b" " * i + b"if x:\n" for i in range(3000)) + b" " * 3000 + b"pass\n"
    ),
    "a long chain of operators": prepend(b"x = " + b"-" * 100_000 + b"1\n"),
    "a long chain of attributes": prepend(b"x = " + b"a." * 4000 + b"a\n"),
    "an unclosed string": prepend(b'"""' + b"x" * 100_000 + b"\n"),
    "NUL bytes": prepend(b"x = 1\0\n"),
    "nothing but NUL bytes": text(b"\0" * 4096),
    "not UTF-8": prepend(b"# \xff\xfe\n"),
    "a wrong coding cookie": prepend(b"# coding: klingon\n"),
    "UTF-16": lambda path: path.write_bytes(path.read_text("utf-8").encode("utf-16")),
    "a FIFO": fifo,
    "a device": device,
    "a link to itself": loop,
    "a link to nothing": dangling,
    "a folder": directory,
    "an archive": text(b"PK\x03\x04" + bytes(range(256)) * 100),
    "Python 2": prepend(b"print 'hello'\n"),
    "merge conflict marks": prepend(b"<<<<<<< ours\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    roots = [plain(tmp_path / str(place)) for place in range(len(FILES))]
    for root, file in zip(roots, FILES, strict=True):
        REFUSED[name](root / "vllm" / file)
    before = snapshot(tmp_path)
    ran = runs([[verb, str(root)] for root in roots for verb in VERBS])
    assert snapshot(tmp_path) == before
    for place, one in enumerate(ran):
        if one.code == 2:
            assert len(one.err.strip().splitlines()) == 1
        else:
            assert one.code == 3
            assert Path(FILES[place // len(VERBS)]).name in one.out + one.err


@pytest.mark.parametrize("file", FILES)
def test_an_empty_file_is_never_written_to(file: str, tmp_path: Path) -> None:
    root = plain(tmp_path / "tree")
    (root / "vllm" / file).write_bytes(b"")
    if file != WARMUP:
        every_verb(root)
    else:
        assert run("check", str(root)).code in (1, 3)


BIG: dict[str, bytes] = {
    "five megabytes of statements": b"x = 1\n" * (5 << 20 >> 3),
    "five megabytes of comment": b"# " + b"x" * 76 + b"\n",
    "a line of a million characters": b"x = '" + b"y" * 1_000_000 + b"'\n",
    "a line of a million numbers": b"x = [" + b"1," * 500_000 + b"]\n",
}


@pytest.mark.parametrize("name", BIG)
def test_a_big_file_is_read_or_refused_within_bounds(name: str, tmp_path: Path) -> None:
    roots = [plain(tmp_path / str(place)) for place in range(len(FILES))]
    times = (5 << 20) // len(BIG[name]) if "comment" in name else 1
    for root, file in zip(roots, FILES, strict=True):
        path = root / "vllm" / file
        path.write_bytes(path.read_bytes() + BIG[name] * times)
    before = snapshot(tmp_path)
    assert {one.code for one in runs([["check", str(root)] for root in roots])} <= {1, 3}
    assert snapshot(tmp_path) == before


def test_links_between_folders_do_not_hang_the_search(tmp_path: Path) -> None:
    root = plain(tmp_path / "tree" / "deep" / "down").parents[1]
    (root / "deep" / "up").symlink_to(root)
    (root / "a").symlink_to(root / "b")
    (root / "b").symlink_to(root / "a")
    before = snapshot(root)
    assert run("check", str(root)).code == 1
    assert snapshot(root) == before


def test_many_folders_do_not_hang_the_search(tmp_path: Path) -> None:
    root = plain(tmp_path / "tree" / "src")
    for number in range(3000):
        (tmp_path / "tree" / "data" / str(number % 50) / str(number)).mkdir(parents=True)
    assert run("check", str(tmp_path / "tree")).code == 1
    assert root.exists()


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty folder", "a folder of others"])
def test_a_tree_without_a_package_is_a_usage_error(what: str, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    if what == "a file":
        root.write_text("x = 1\n")
    elif what == "an empty folder":
        root.mkdir()
    elif what == "a folder of others":
        (root / "vllm").mkdir(parents=True)
        (root / "vllm" / "__init__.py").write_text("")
    ran = run("check", str(root))
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) == 1
    assert ran.out == ""


def two_packages(root: Path) -> Path:
    plain(root / "first")
    plain(root / "second", "14-renamed-package")
    return root


def test_two_packages_are_both_named(tmp_path: Path) -> None:
    root = two_packages(tmp_path / "tree")
    for ran in every_verb(root):
        assert ran.code in (2, 3)
        assert "first/vllm" in ran.out + ran.err
        assert "second/acme_llm" in ran.out + ran.err


def test_package_chooses_between_two(tmp_path: Path) -> None:
    root = two_packages(tmp_path / "tree")
    ran = run("diff", str(root), "--package", "second/acme_llm")
    assert ran.code == 0
    assert "second/acme_llm/v1/worker/gpu_worker.py" in ran.out
    assert "first/vllm" not in ran.out


def test_a_package_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    root = two_packages(tmp_path / "tree")
    ran = run("check", str(root), "--package", "third/vllm")
    assert ran.code == 2
    assert "third/vllm" in ran.err


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b.c",
         "-c", "commit.gpgsign=false", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )  # fmt: skip


def repository(root: Path) -> Path:
    plain(root)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a tree")
    return root


def test_a_worktree_is_a_tree(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    git(root, "worktree", "add", "-q", str(tmp_path / "work"))
    work = str(tmp_path / "work")
    calls = [["check", work], ["apply", work], ["check", work], ["check", str(root)]]
    assert [one.code for one in runs(calls)] == [1, 0, 0, 1]


def test_a_submodule_is_a_tree_and_so_is_what_holds_it(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner")
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(inner), "engine")
    engine = str(outer / "engine")
    calls = [["check", str(outer)], ["check", engine], ["apply", str(outer)], ["check", engine]]
    assert [one.code for one in runs(calls)] == [1, 1, 0, 0]


def test_a_site_packages_folder_is_a_tree(tmp_path: Path) -> None:
    site = plain(tmp_path / "site-packages")
    for name in ("numpy", "torch", "vllm-0.21.0.dist-info"):
        (site / name).mkdir()
        (site / name / "METADATA").write_text("Name: x\n")
    assert run("check", str(site)).code == 1


def test_the_package_folder_itself_is_a_tree(tmp_path: Path) -> None:
    root = plain(tmp_path / "tree")
    assert run("check", str(root / "vllm")).code == 1
    assert run("check", ".", folder=root / "vllm").code == 1


def test_only_and_skip_take_the_parts_that_are_sure(tmp_path: Path) -> None:
    root = plain(tmp_path / "tree", "14-no-warm-up-module")
    assert run("apply", str(root)).code == 3
    ran = run("apply", str(root), "--only", "kernel")
    assert ran.code == 0, ran.err
    changed = (root / "vllm" / BLOCK_TABLE).read_bytes()
    assert b'do_not_specialize=["num_tokens"]' in changed
    assert (root / "vllm" / WORKER).read_bytes() == trees.fork("14-no-warm-up-module").tree.inside[
        WORKER
    ]
