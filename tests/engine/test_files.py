"""What stands in a file's place is one line, and nothing is read without a limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codemods.engine import files
from codemods.engine.files import MAX_BYTES, Disk, UnreadableFile, read_file, read_start


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_file_up_to_the_limit_is_read_whole(size: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * size)
    assert read_file(tmp_path / "a", 100) == b"x" * size


def test_the_start_of_a_larger_file_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100)
    assert read_start(tmp_path / "a", 4) == b"abca"
    with pytest.raises(OSError, match="larger than 100 bytes"):
        read_file(tmp_path / "a", 100)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "there is a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 1 << 40), "larger than"),
    ],
    ids=["FIFO", "folder", "endless device", "terabyte"],
)
def test_what_is_no_file_is_an_error_that_says_so(
    make: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    make(tmp_path / "a")
    with pytest.raises(OSError, match=why):
        read_file(tmp_path / "a")


def test_a_file_that_says_it_is_empty_is_read_within_the_limit() -> None:
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_file(Path("/proc/self/status"), 10)


def test_all_files_of_a_tree_together_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_TOTAL", 250)
    (tmp_path / "a").write_bytes(b"x" * 100)
    disk = Disk(tmp_path)
    assert [disk.read("a"), disk.read("a")] == [b"x" * 100] * 2
    with pytest.raises(UnreadableFile, match="of the tree were read"):
        disk.read("a")


def test_a_folder_of_more_entries_than_the_limit_is_read_up_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_ENTRIES", 3)
    for number in range(9):
        (tmp_path / str(number)).touch()
    assert len(Disk(tmp_path).names(".")) == 3


def test_names_of_a_folder_outside_the_tree_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/out").symlink_to("/etc")
    assert Disk(tmp_path / "tree").names("out") == ()


@pytest.mark.parametrize("name", ["a" * 5_000, "a\0b"])
def test_a_name_that_no_file_can_have_is_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile) as caught:
        Disk(tmp_path).read(name)
    assert "\n" not in str(caught.value)


def test_a_path_longer_than_any_is_no_file(tmp_path: Path) -> None:
    assert Disk(tmp_path).read("a/" * 3_000 + "b") is None


def test_the_largest_module_there_is_fits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(MAX_BYTES))
    assert len(Disk(tmp_path).read("a") or b"") == MAX_BYTES
