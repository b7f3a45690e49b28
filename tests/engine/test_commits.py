"""A commit's files read as they would be from a checkout of it, and nothing else is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codemods.engine.checkout import WORKER, AmbiguousPackage, Checkout, UsageError
from codemods.engine.commits import CommitFiles
from codemods.engine.files import MAX_BYTES, Disk, UnreadableFile
from codemods.engine.git import opened
from codemods.engine.objects import reading
from codemods.engine.repository import Repository
from tests.forks.profiles import FRESH
from tests.repositories import commit, git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@contextmanager
def files_of(root: Path, expression: str = "HEAD") -> Iterator[CommitFiles]:
    found = Repository.at(root)
    assert found is not None
    with opened(found) as running, reading(running) as objects:
        yield CommitFiles(objects, objects.root(objects.commit(expression)), root.name)


def everything(root: Path) -> Path:
    """A repository with every kind of entry that a tree can have."""
    repository(root, {f"vllm/{WORKER}": b"x = 1\n", "a/b.py": b"\x00\xff\r\n", "empty": b""})
    (root / "a/b.py").chmod(0o755)
    (root.parent / "outside").touch()
    links = {
        "a/inside": "../vllm",
        "a/file": "b.py",
        "a/through": "inside/v1/worker/gpu_worker.py",
        "out": "../outside",
        "absolute": "/etc/passwd",
        "nowhere": "none",
        "circle": "circle",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    commit(root, {".hidden/x.py": b"", "a/\xe9 b.py": b"", "deep/er/x.py": b""})
    return root


NAMES = (
    ".", "a", "a/b.py", "a/file", "a/inside", "a/through", "a/inside/v1/worker/gpu_worker.py",
    "out", "absolute", "nowhere", "circle", "empty", "none", "none/x", "a/b.py/x", ".hidden",
    ".hidden/x.py", "vllm", "deep", "deep/er", f"vllm/{WORKER}", "a/\xe9 b.py", "a/../empty",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_commit_answers_as_the_disk_does(name: str, tmp_path: Path) -> None:
    root = everything(tmp_path / "repository")
    disk = Disk(root)

    def answers(files: CommitFiles | Disk) -> list[object]:
        try:
            data: object = files.read(name)
        except UnreadableFile as error:
            data = error.why.replace("Too many levels of symbolic links", "circle")
            data = "circle" if "circle" in str(data) else data
        names = tuple(one for one in files.names(name) if one != ".git")
        real = files.real_folder(name) if files.names(name) else None
        return [data, files.exists(name), names, files.folders(name), real]

    with files_of(root) as files:
        assert answers(files) == answers(disk)


def test_a_mode_is_the_files(tmp_path: Path) -> None:
    with files_of(everything(tmp_path / "repository")) as files:
        assert [files.mode(name) for name in ("a/b.py", "a/file", "empty", "none", "a")] == [
            "100755", "100755", "100644", "100644", "100644",
        ]  # fmt: skip


def test_the_work_tree_is_not_looked_at_and_not_touched(tmp_path: Path) -> None:
    root = everything(tmp_path / "repository")
    (root / "a/b.py").write_bytes(b"edited")
    (root / "empty").unlink()
    index = (root / ".git/index").stat()
    with files_of(root) as files:
        assert files.read("a/b.py") == b"\x00\xff\r\n"
        assert files.read("empty") == b""
    assert (root / "a/b.py").read_bytes() == b"edited"
    now = (root / ".git/index").stat()
    assert (now.st_mtime_ns, now.st_ino) == (index.st_mtime_ns, index.st_ino)


def test_a_large_blob_is_not_read_and_the_next_one_is(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"large.py": bytes(MAX_BYTES + 1), "small.py": b"x"})
    with files_of(root) as files:
        with pytest.raises(UnreadableFile, match="larger than 8 MiB"):
            files.read("large.py")
        assert files.read("small.py") == b"x"


@pytest.mark.skipif(not FRESH, reason="some 10 seconds: only in make search")
def test_a_blob_of_two_gigabytes_costs_neither_memory_nor_time(tmp_path: Path) -> None:
    import resource

    root = repository(tmp_path / "r", {"small.py": b"x"})
    with (root / "large.py").open("wb") as file:
        file.truncate(1 << 31)
    git(root, "-c", "core.bigFileThreshold=1m", "-c", "core.compression=1", "add", "large.py")
    git(root, "commit", "-q", "-m", "large")
    (root / "large.py").unlink()
    with files_of(root) as files, pytest.raises(UnreadableFile, match="larger"):
        files.read("large.py")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_500_000


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("hashing", ["sha1", "sha256"])
def test_bare_repositories_and_both_hashes_are_read(
    bare: bool, hashing: str, tmp_path: Path
) -> None:
    root = tmp_path / "r"
    root.mkdir()
    git(root, "init", "-q", f"--object-format={hashing}")
    identity = commit(root, {"a.py": b"x"})
    git(root, "gc", "-q")
    if bare:
        git(tmp_path, "clone", "-q", "--bare", str(root), "b.git")
        root = tmp_path / "b.git"
    with files_of(root) as files:
        assert files.read("a.py") == b"x"
        assert files.objects.commit("HEAD") == identity


def test_a_worktree_and_an_alternate_lend_their_objects(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": b"x"})
    git(root, "worktree", "add", "-q", "../side")
    git(tmp_path, "clone", "-q", "--shared", str(root), "shared")
    for where in (tmp_path / "side", tmp_path / "shared"):
        with files_of(where) as files:
            assert files.read("a.py") == b"x"


def test_a_partial_clone_refuses_and_fetches_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": b"x"})
    git(root, "config", "uploadpack.allowFilter", "true")
    url = f"file://{root}"
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", url, "blobless.git")
    git(tmp_path, "clone", "-q", "--bare", "--filter=tree:0", url, "treeless.git")
    for name in ("blobless.git", "treeless.git"):
        clone = tmp_path / name
        marker = tmp_path / "ran"
        git(clone, "config", "remote.origin.uploadpack", f"touch {marker}; git-upload-pack")
        before = sorted(clone.rglob("*"))
        with files_of(clone) as files, pytest.raises(UnreadableFile, match="partial clone"):
            files.read("a.py")
        assert not marker.exists()
        assert sorted(clone.rglob("*")) == before


def test_the_package_is_found_as_on_the_disk(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {f"src/vllm/{WORKER}": b"", f"old/x/y/{WORKER}": b""})
    with files_of(root) as files:
        with pytest.raises(AmbiguousPackage):
            Checkout.find_in(files, root)
        found = Checkout.find_in(files, root, "src/vllm")
        assert (found.package, found.package_name) == ("src/vllm", "vllm")
        with pytest.raises(UsageError, match="not inside"):
            Checkout.find_in(files, root, "../r")


def test_a_repository_that_is_the_package_goes_by_its_own_name(tmp_path: Path) -> None:
    root = repository(tmp_path / "acme", {WORKER: b""})
    with files_of(root) as files:
        assert Checkout.find_in(files, root).package_name == "acme"


def test_a_tree_of_endless_folders_ends_in_one_line(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"x": b""})
    tree = git(root, "rev-parse", "HEAD^{tree}")
    for _ in range(12):
        lines = "".join(f"040000 tree {tree}\tf{number}\n" for number in range(10))
        tree = git(root, "mktree", stdin=lines.encode())
    made = git(root, "commit-tree", tree, "-m", "bomb")
    with files_of(root, made) as files, pytest.raises(UsageError, match="more than"):
        Checkout.find_in(files, root)


def test_a_very_deep_tree_ends(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"x": b""})
    tree = git(root, "rev-parse", "HEAD^{tree}")
    for _ in range(300):
        tree = git(root, "mktree", stdin=f"040000 tree {tree}\t{'f' * 50}\n".encode())
    made = git(root, "commit-tree", tree, "-m", "deep")
    with files_of(root, made) as files, pytest.raises(UsageError, match="holds no vLLM"):
        Checkout.find_in(files, root)


def test_entries_with_the_names_of_other_folders_lead_nowhere(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"x": b""})
    tree = git(root, "rev-parse", "HEAD^{tree}")
    raw = b"".join(b"40000 " + name + b"\0" + bytes.fromhex(tree) for name in (b"..", b".", b"a/b"))
    odd = git(root, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=raw)
    with files_of(root, git(root, "commit-tree", odd, "-m", "odd")) as files:
        assert files.read("a/b/x") is None
        with pytest.raises(UsageError):
            Checkout.find_in(files, root)


@pytest.mark.parametrize("at", [0, 1, 20, -1])
def test_a_broken_object_is_one_line(at: int, tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": b"x" * 500})
    blob = git(root, "rev-parse", "HEAD:a.py")
    path = root / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))
    with files_of(root) as files, pytest.raises(UnreadableFile) as caught:
        files.read("a.py")
    assert "\n" not in str(caught.value)


def test_an_object_that_is_a_fifo_ends_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codemods.engine.objects.TIMEOUT", 0.5)
    root = repository(tmp_path / "r", {"a.py": b"x"})
    blob = git(root, "rev-parse", "HEAD:a.py")
    path = root / ".git/objects" / blob[:2] / blob[2:]
    path.unlink()
    os.mkfifo(path)
    start = time.monotonic()
    with files_of(root) as files:
        for _ in range(10):
            with pytest.raises(UnreadableFile, match="did not answer"):
                files.read("a.py")
    assert time.monotonic() - start < 3


def test_what_is_the_same_for_two_commits_is_seen(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": b"x", "b.py": b"y"})
    commit(root, {"b.py": b"z"})
    with files_of(root) as new, files_of(root, "HEAD~1") as old:
        old.read("a.py")
        old.names(".")
        assert new.answers_as(old)
        old.read("b.py")
        assert not new.answers_as(old)
