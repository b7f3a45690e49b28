"""Which files git calls changed, whatever repository is around them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from codemods.engine.uncommitted import GitUnsure, dirty_files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
FILE = "vllm/v1/worker/block_table.py"
OTHER = "vllm/v1/worker/gpu/warmup.py"


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No one's own settings, and none of a hook that runs these tests."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    command = ("git", *identity, "-c", "protocol.file.allow=always", *arguments)
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def package(root: Path) -> Path:
    for name in (FILE, OTHER):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"one\n")
    return root


def repository(root: Path) -> Path:
    package(root)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    return root


def edit(root: Path, name: str = FILE) -> None:
    (root / name).write_bytes(b"two\n")


# Nothing to say


def test_committed_files_are_clean(tmp_path: Path) -> None:
    assert dirty_files(repository(tmp_path), [FILE, OTHER]) == []


def test_outside_a_repository_every_file_is_clean(tmp_path: Path) -> None:
    assert dirty_files(package(tmp_path), [FILE, OTHER]) == []


def test_without_git_every_file_is_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(repository(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert dirty_files(tmp_path, [FILE]) == []


def test_changes_elsewhere_do_not_count(tmp_path: Path) -> None:
    edit(repository(tmp_path), OTHER)
    (tmp_path / "new.py").touch()
    assert dirty_files(tmp_path, [FILE]) == []


def test_a_touched_file_is_clean_and_the_index_is_not_rewritten(tmp_path: Path) -> None:
    repository(tmp_path)
    os.utime(tmp_path / FILE, (1, 1))
    index = (tmp_path / ".git" / "index").stat()
    assert dirty_files(tmp_path, [FILE]) == []
    now = (tmp_path / ".git" / "index").stat()
    assert (now.st_mtime_ns, now.st_ino) == (index.st_mtime_ns, index.st_ino)


@pytest.mark.parametrize("ignored", [True, False])
def test_a_virtual_environment_inside_a_repository_is_clean(tmp_path: Path, ignored: bool) -> None:
    repository(tmp_path)
    if ignored:
        (tmp_path / ".gitignore").write_text(".venv\n")
    site_packages = package(tmp_path / ".venv" / "lib" / "python3.12" / "site-packages")
    assert dirty_files(site_packages, [FILE, OTHER]) == []


def test_an_unpacked_tree_where_nothing_is_committed_yet_is_clean(tmp_path: Path) -> None:
    git(package(tmp_path), "init", "-q")
    assert dirty_files(tmp_path, [FILE]) == []


def test_an_ignored_file_is_clean(tmp_path: Path) -> None:
    repository(tmp_path)
    git(tmp_path, "rm", "-q", "--cached", FILE)
    (tmp_path / ".gitignore").write_text("block_table.py\n")
    git(tmp_path, "commit", "-q", "-m", "ignored")
    assert dirty_files(tmp_path, [FILE]) == []


def test_a_git_folder_that_is_no_repository_is_no_hindrance(tmp_path: Path) -> None:
    (package(tmp_path) / ".git").mkdir()
    assert dirty_files(tmp_path, [FILE]) == []


# Changes


def test_an_edited_file_is_dirty(tmp_path: Path) -> None:
    edit(repository(tmp_path))
    assert dirty_files(tmp_path, [OTHER, FILE]) == [FILE]


def test_a_staged_change_is_dirty(tmp_path: Path) -> None:
    edit(repository(tmp_path))
    git(tmp_path, "add", "-A")
    assert dirty_files(tmp_path, [FILE]) == [FILE]


def test_an_added_file_is_dirty_before_the_first_commit(tmp_path: Path) -> None:
    git(package(tmp_path), "init", "-q")
    git(tmp_path, "add", FILE)
    assert dirty_files(tmp_path, [FILE]) == [FILE]


def test_a_new_file_beside_tracked_ones_is_dirty(tmp_path: Path) -> None:
    repository(tmp_path)
    new = "vllm/v1/worker/new.py"
    edit(tmp_path, new)
    git(tmp_path, "config", "status.showUntrackedFiles", "no")
    assert dirty_files(tmp_path, [new]) == [new]


def test_the_package_folder_as_root_is_asked_by_its_own_names(tmp_path: Path) -> None:
    edit(repository(tmp_path))
    name = FILE.removeprefix("vllm/")
    assert dirty_files(tmp_path / "vllm", [name]) == [name]


@pytest.mark.parametrize(
    "name", ["vllm/*.py", "vllm/:(top)x.py", "vllm/-x.py", "vllm/new\nline.py"]
)
def test_a_file_with_an_odd_name_is_that_file(tmp_path: Path, name: str) -> None:
    edit(package(tmp_path), name)
    repository(tmp_path)
    edit(tmp_path)
    assert dirty_files(tmp_path, [name]) == []
    (tmp_path / name).write_bytes(b"three")
    assert dirty_files(tmp_path, [name]) == [name]


def test_a_link_is_asked_for_its_file(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / "link.py").symlink_to(FILE)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "link")
    assert dirty_files(tmp_path, ["link.py"]) == []
    edit(tmp_path)
    assert dirty_files(tmp_path, ["link.py"]) == ["link.py"]


def test_a_submodule_answers_for_itself(tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", str(repository(tmp_path / "inner")), "third/vllm")
    git(outer, "commit", "-q", "-m", "submodule")
    name = f"third/vllm/{FILE}"
    assert dirty_files(outer, [name]) == []
    edit(outer, name)
    assert dirty_files(outer, [FILE, name]) == [name]


def test_a_worktree_answers_for_itself(tmp_path: Path) -> None:
    repository(tmp_path / "main")
    git(tmp_path / "main", "worktree", "add", "-q", "../side")
    edit(tmp_path / "side")
    assert dirty_files(tmp_path / "side", [FILE]) == [FILE]
    assert dirty_files(tmp_path / "main", [FILE]) == []


def test_the_variables_of_a_git_hook_do_not_point_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(repository(tmp_path / "ours"))
    other = repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert dirty_files(tmp_path / "ours", [FILE]) == [FILE]


def test_another_users_repository_answers_since_nothing_of_it_is_run(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    repository(tmp_path)
    for path in (tmp_path, tmp_path / ".git"):
        os.chown(path, 1234, 1234)
    assert dirty_files(tmp_path, [FILE]) == []
    edit(tmp_path)
    assert dirty_files(tmp_path, [FILE]) == [FILE]


def test_a_staged_and_taken_back_change_is_dirty(tmp_path: Path) -> None:
    edit(repository(tmp_path))
    git(tmp_path, "add", "-A")
    (tmp_path / FILE).write_bytes(b"one\n")
    assert dirty_files(tmp_path, [FILE]) == [FILE]


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_is_reported_not_to_look_at_is_dirty(mark: str, tmp_path: Path) -> None:
    edit(repository(tmp_path))
    git(tmp_path, "update-index", mark, FILE)
    assert dirty_files(tmp_path, [FILE, OTHER]) == [FILE]


@pytest.mark.parametrize("setting", ["core.autocrlf=true", "core.eol=crlf"])
def test_line_ends_that_git_converts_are_clean(setting: str, tmp_path: Path) -> None:
    repository(tmp_path)
    git(tmp_path, "config", *setting.split("="))
    (tmp_path / ".gitattributes").write_text("*.py text\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "attributes")
    (tmp_path / FILE).unlink()
    git(tmp_path, "checkout", "-q", "--", FILE)
    assert (tmp_path / FILE).read_bytes() == b"one\r\n"
    assert dirty_files(tmp_path, [FILE]) == []
    (tmp_path / FILE).write_bytes(b"two\r\n")
    assert dirty_files(tmp_path, [FILE]) == [FILE]


def test_a_repository_of_sha256_answers(tmp_path: Path) -> None:
    git(package(tmp_path), "init", "-q", "--object-format=sha256")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "one")
    assert dirty_files(tmp_path, [FILE]) == []
    edit(tmp_path)
    assert dirty_files(tmp_path, [FILE]) == [FILE]


def test_a_split_index_and_a_sparse_index_answer(tmp_path: Path) -> None:
    repository(tmp_path / "split")
    git(tmp_path / "split", "update-index", "--split-index")
    repository(tmp_path / "sparse")
    git(tmp_path / "sparse", "sparse-checkout", "set", "--sparse-index", "vllm/v1/worker/gpu")
    for root in (tmp_path / "split", tmp_path / "sparse"):
        assert dirty_files(root, [OTHER]) == []
        edit(root, OTHER)
        assert dirty_files(root, [OTHER]) == [OTHER]


# Nobody knows


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
def test_a_clean_file_that_git_is_reported_not_to_look_at_is_one_line(
    mark: str, tmp_path: Path
) -> None:
    repository(tmp_path)
    git(tmp_path, "update-index", f"--{mark}", FILE)
    with pytest.raises(GitUnsure, match=mark):
        dirty_files(tmp_path, [FILE])


@pytest.mark.parametrize("attribute", ["filter=x", "ident", "working-tree-encoding=UTF-16"])
def test_a_file_of_which_git_keeps_other_bytes_is_one_line(attribute: str, tmp_path: Path) -> None:
    repository(tmp_path)
    edit(tmp_path)
    (tmp_path / ".gitattributes").write_text(f"*.py {attribute}\n")
    with pytest.raises(GitUnsure, match=attribute.partition("=")[0]):
        dirty_files(tmp_path, [FILE])
    assert dirty_files(tmp_path, [OTHER]) == []


def test_a_worktree_whose_repository_is_gone_is_one_line(tmp_path: Path) -> None:
    (package(tmp_path) / ".git").write_text("gitdir: /gone/.git/worktrees/side\n")
    with pytest.raises(GitUnsure, match=r"block_table\.py"):
        dirty_files(tmp_path, [FILE])


def test_a_broken_index_is_one_line(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / ".git" / "index").write_bytes(b"broken")
    with pytest.raises(GitUnsure):
        dirty_files(tmp_path, [FILE])
