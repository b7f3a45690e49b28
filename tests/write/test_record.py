"""RECORD of an installed package: the rows of changed files, and no other byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codemods.engine.checkout import UsageError
from codemods.engine.plan import EditName, FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.write.record import updated, with_record

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


def plan_of(site: Path, package: str = "vllm", before: bytes = b"x\n") -> Plan:
    outcome = Outcome(EditName.KERNEL, Status.EDIT, Reason.ADDED, "Adds.", "vllm/a.py", 1)
    change = FileChange("vllm/a.py", before, b"y\n", (EditName.KERNEL,))
    return Plan(Tree(site, package), (outcome,), (change,), Verdict.FIXABLE)


def test_the_rows_of_changed_files_are_the_only_bytes_that_change(site: Path) -> None:
    record, kernel = with_record(plan_of(site)).changes
    assert kernel == plan_of(site).changes[0]
    assert record.path == "vllm-0.21.0.dist-info/RECORD"
    assert record.after == record.before.replace(b"old", DIGEST)


def test_the_plan_is_otherwise_the_same(site: Path) -> None:
    assert replace(with_record(plan_of(site)), changes=()) == replace(plan_of(site), changes=())


def test_nothing_is_written(site: Path) -> None:
    before = (site / "vllm-0.21.0.dist-info/RECORD").read_bytes()
    with_record(plan_of(site))
    assert (site / "vllm-0.21.0.dist-info/RECORD").read_bytes() == before


def test_a_record_that_is_right_is_left_alone(site: Path) -> None:
    (site / "vllm/a.py").write_bytes(b"y\n")
    record = site / "vllm-0.21.0.dist-info/RECORD"
    record.write_bytes(b"vllm/a.py,sha256=%b,2\n" % DIGEST)
    fixed = replace(plan_of(site), changes=(), verdict=Verdict.ALREADY_FIXED)
    assert with_record(fixed) == fixed


def test_a_tree_that_was_fixed_without_its_record_is_completed(site: Path) -> None:
    (site / "vllm/a.py").write_bytes(b"y\n")
    fixed = replace(plan_of(site), changes=(), verdict=Verdict.ALREADY_FIXED)
    (record,) = with_record(fixed).changes
    assert b"vllm/a.py,sha256=%b,2\n" % DIGEST in record.after


def test_another_packages_record_is_left_alone(site: Path) -> None:
    (site / "other-1.dist-info").mkdir()
    (site / "other-1.dist-info/RECORD").write_bytes(b"other/a.py,sha256=x,1\n")
    assert [change.path for change in with_record(plan_of(site)).changes] == [
        "vllm-0.21.0.dist-info/RECORD",
        "vllm/a.py",
    ]


def test_a_plan_that_speaks_of_no_file_is_left_alone(tmp_path: Path) -> None:
    plan = Plan(Tree(tmp_path, "vllm"), (), (), Verdict.NOT_AFFECTED)
    assert with_record(plan) == plan


def test_the_package_folder_itself_is_refused(site: Path) -> None:
    with pytest.raises(UsageError, match=str(site)):
        with_record(plan_of(site / "vllm", "."))


def test_a_tree_without_a_record_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        with_record(plan_of(tmp_path))
    assert "\n" not in str(caught.value)


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
