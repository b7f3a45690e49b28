"""RECORD of an installed package: the rows of changed files, and no other byte."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from pathlib import Path

import pytest

from codemods.engine.checkout import UsageError
from codemods.engine.files import MAX_BYTES
from codemods.engine.plan import FileChange, Outcome, Plan, Reason, Status, Tree
from codemods.write.record import updated, with_record
from tests.plans import plan_of

# sha256 of b"y\n", URL-safe base64 without padding.
DIGEST = b"O7Krtp67J_v-Y8djliTG7F4zG4QaW8jD68ELkoXpCHc"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm/a.py").write_bytes(b"x\n")
    (tmp_path / "vllm-0.21.0.dist-info").mkdir()
    (tmp_path / "vllm-0.21.0.dist-info/RECORD").write_bytes(
        b"vllm/a.py,sha256=old,2\nvllm/b.py,sha256=b,9\nvllm-0.21.0.dist-info/RECORD,,\n"
    )
    return tmp_path


RECORD = "vllm-0.21.0.dist-info/RECORD"


def plan(root: Path, *, package: str = "vllm", fixed: bool = False, file: str = "a.py") -> Plan:
    name = posixpath.normpath(f"{package}/{file}")
    outcome = Outcome("kernel", Status.EDIT, Reason.ADDED, "Adds.", name, 1)
    changes = () if fixed else (FileChange(name, b"x\n", b"y\n", ("kernel",)),)
    return plan_of([outcome], changes, tree=Tree(root, package))


def paths(plan: Plan) -> list[str]:
    return [change.path for change in with_record(plan)]


def test_the_rows_of_changed_files_are_the_only_bytes_that_change(site: Path) -> None:
    kernel, record = with_record(plan(site))
    assert kernel == plan(site).changes[0]
    assert record.path == RECORD
    assert record.after == record.before.replace(b"old", DIGEST)
    assert record.rank > kernel.rank


@pytest.mark.parametrize("inside", ["lib", "a/b"])
def test_a_site_packages_folder_deeper_down_is_found(inside: str, site: Path) -> None:
    (site.parent / "deep" / inside).parent.mkdir(parents=True)
    site.rename(site.parent / "deep" / inside)
    found = with_record(plan(site.parent / "deep", package=f"{inside}/vllm"))
    assert [change.path for change in found] == [f"{inside}/vllm/a.py", f"{inside}/{RECORD}"]


def test_nothing_is_written(site: Path) -> None:
    before = (site / RECORD).read_bytes()
    with_record(plan(site))
    assert (site / RECORD).read_bytes() == before


def test_a_record_that_is_right_is_left_alone(site: Path) -> None:
    (site / "vllm/a.py").write_bytes(b"y\n")
    (site / RECORD).write_bytes(b"vllm/a.py,sha256=%b,2\n" % DIGEST)
    assert paths(plan(site, fixed=True)) == []


def test_a_tree_that_was_fixed_without_its_record_is_completed(site: Path) -> None:
    (site / "vllm/a.py").write_bytes(b"y\n")
    (record,) = with_record(plan(site, fixed=True))
    assert b"vllm/a.py,sha256=%b,2\n" % DIGEST in record.after


def test_another_packages_record_is_left_alone(site: Path) -> None:
    (site / "other-1.dist-info").mkdir()
    (site / "other-1.dist-info/RECORD").write_bytes(b"other/a.py,sha256=x,1\n")
    (site / "third-1.dist-info").mkdir()
    assert paths(plan(site)) == ["vllm/a.py", RECORD]


def test_a_plan_that_speaks_of_no_file_is_left_alone(tmp_path: Path) -> None:
    assert with_record(plan_of(tree=Tree(tmp_path, "vllm"))) == ()


def test_the_package_folder_itself_is_refused(site: Path) -> None:
    with pytest.raises(UsageError, match=str(site)):
        with_record(plan(site / "vllm", package="."))


def test_a_tree_without_a_record_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        with_record(plan(tmp_path))
    assert "\n" not in str(caught.value)


def link_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        Path.mkdir,
        link_to("/dev/zero"),
        link_to("/etc/passwd"),
        link_to("RECORD"),
        lambda path: path.write_bytes(bytes(MAX_BYTES + 1)),
    ],
    ids=["FIFO", "folder", "endless device", "file of the machine", "circle", "too large"],
)
def test_what_is_no_record_is_one_line(make: Callable[[Path], object], site: Path) -> None:
    (site / RECORD).unlink()
    make(site / RECORD)
    with pytest.raises(UsageError, match="RECORD") as caught:
        with_record(plan(site))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("row", [b"a" * 200_000 + b",x,1\n", b"a\0b,x,1\n"])
def test_a_row_that_names_no_file_stays(row: bytes, site: Path) -> None:
    whole = (site / RECORD).read_bytes()
    (site / RECORD).write_bytes(row + whole)
    assert with_record(plan(site))[1].after == row + whole.replace(b"old", DIGEST)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"vllm/b.py,sha256=x,1\n",
        b"vllm/a.py\n",
        b"vllm/a.py,sha256=x\n",
        b"# vllm/a.py,sha256=x,1\n",
        b"\xff\xfe,,\n",
        b'"vllm/a.py,sha256=x,1\n',
    ],
)
def test_a_record_that_does_not_list_the_file_stays(record: bytes) -> None:
    assert updated(record, {"vllm/a.py": b"y\n"}) == record


def test_line_ends_quotes_and_a_missing_last_newline_stay() -> None:
    record = b'"vllm/a,b.py",sha256=x,1\r\nvllm/a.py,sha256=x,1'
    assert updated(record, {"vllm/a.py": b"y\n", "vllm/a,b.py": b"y\n"}) == (
        b'"vllm/a,b.py",sha256=%b,2\r\nvllm/a.py,sha256=%b,2' % (DIGEST, DIGEST)
    )
