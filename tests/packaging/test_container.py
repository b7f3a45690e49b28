"""The Dockerfile's line with `apply`, run in a shell on an installed vLLM."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import sys
from pathlib import Path

import pytest
from consumers import Case, contents, environment, example, run


@pytest.fixture
def site(small: Case, tmp_path: Path) -> Path:
    """A site-packages folder with the tree and a dist-info whose RECORD is right."""
    site = small.copy(tmp_path / "venv/lib/python3/site-packages")
    info = site / "vllm-0.21.0.dist-info"
    info.mkdir()
    rows = [(name, *fingerprint(data)) for name, data in contents(site).items()]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*rows, (f"{info.name}/RECORD", "", "")])
    (info / "RECORD").write_text(text.getvalue(), encoding="utf-8")
    return site


def test_the_line_fixes_and_leaves_record_right_and_then_stops(
    small: Case, site: Path, tmp_path: Path
) -> None:
    before = contents(site)
    ran = run(apply_line(), tmp_path, **python3(tmp_path, site))
    assert ran.status == 0, ran.output
    after = contents(site)
    changed = {name for name, data in after.items() if before[name] != data}
    assert changed == {*small.changes, "vllm-0.21.0.dist-info/RECORD"}
    small.assert_fixed(site)
    assert wrong_rows(site) == []
    assert run(apply_line(), tmp_path, **python3(tmp_path, site)).status == 1
    assert contents(site) == after


def test_without_update_record_the_changed_files_do_not_match_as_the_page_says(
    small: Case, site: Path, tmp_path: Path
) -> None:
    assert wrong_rows(site) == []
    line = apply_line().replace(" --update-record", "")
    assert run(line, tmp_path, **python3(tmp_path, site)).status == 0
    assert wrong_rows(site) == sorted(small.changes)


def test_the_line_imports_no_vllm_to_find_it(site: Path, tmp_path: Path) -> None:
    (site / "vllm/__init__.py").write_text("raise SystemExit('imported')\n")
    assert run(apply_line(), tmp_path, **python3(tmp_path, site)).status == 0


def test_an_image_that_needs_no_fix_is_left_as_it_is(
    small: Case, site: Path, tmp_path: Path
) -> None:
    for name, after in small.changes.items():
        (site / name).write_bytes(after)
    before = contents(site)
    ran = run(apply_line(), tmp_path, **python3(tmp_path, site))
    assert ran.status == 1
    assert "drop this step" in ran.output
    assert contents(site) == before


def apply_line() -> str:
    """The shell command of the example's RUN instruction that applies the fix."""
    runs = re.split(r"^RUN ", example("dockerfile"), flags=re.MULTILINE)
    (line,) = [one.strip() for one in runs if "vllm-codemods apply" in one]
    return line


def python3(folder: Path, site: Path) -> dict[str, str]:
    """An environment whose python3 finds the installed package."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin/python3"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{folder / 'bin'}:{environment(folder)['PATH']}"}


def fingerprint(data: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(data))


def wrong_rows(site: Path) -> list[str]:
    """The files that do not match their row in RECORD."""
    (record,) = site.glob("*.dist-info/RECORD")
    rows = csv.reader(io.StringIO(record.read_text(encoding="utf-8")))
    return sorted(
        name
        for name, digest, size in rows
        if digest and fingerprint((site / name).read_bytes()) != (digest, size)
    )
