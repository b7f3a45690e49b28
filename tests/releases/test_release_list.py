"""The list of releases itself, the README's table, and the tools around them; no network."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.plan import Outcome, Verdict, verdict_of
from codemods.release import UnreachableError
from codemods.release.names import Source, wanted
from tests.releases.trees import PINNED, new_releases, release_table

RECIPE = registry.get(registry.DEFAULT)
KNOWN = tuple(pinned.version for pinned in PINNED if pinned.source is Source.WHEEL)


def test_the_readme_says_what_the_list_says() -> None:
    assert release_table.main(["--check"]) == 0, "run tools/release_table.py"


def test_a_stale_table_is_reported_and_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    text = f"before\n{release_table.BEGIN}\nold\n{release_table.END}\nafter\n"
    readme.write_text(text, "utf-8")
    assert release_table.main(["--check", str(readme)]) == 1
    assert readme.read_text("utf-8") == text


def test_the_table_is_written_between_its_markers(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{release_table.BEGIN}{release_table.END}\nafter\n", "utf-8")
    assert release_table.main([str(readme)]) == 0
    text = readme.read_text("utf-8")
    assert text.startswith(f"before\n{release_table.BEGIN}\n| vLLM |")
    assert text.endswith(f"|\n{release_table.END}\nafter\n")
    assert release_table.main(["--check", str(readme)]) == 0


def test_a_readme_without_markers_is_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("text\n", "utf-8")
    assert release_table.main([str(readme)]) == 2
    assert readme.read_text("utf-8") == "text\n"


@pytest.mark.parametrize("count", [0, 2])
def test_a_release_without_one_entry_of_each_recipe_is_refused(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "releases.toml"
    text = release_table.LIST.read_text("utf-8")
    listed.write_text(text.replace('"0.24.0",\n]', '"0.24.0",\n]' if count else "]"), "utf-8")
    if count:
        listed.write_text(text.replace('releases = ["0.25.0"', 'releases = ["0.24.0", "0.25.0"'))
    readme = tmp_path / "README.md"
    readme.write_text(f"{release_table.BEGIN}{release_table.END}\n", "utf-8")
    before = readme.read_bytes()
    assert release_table.main([str(readme), "--releases", str(listed)]) == 2
    where = f"{count} tables [also.kv-block-zeroing.…] of releases.toml"
    assert capsys.readouterr().err == f"0.24.0 is in {where}: it must be in one\n"
    assert readme.read_bytes() == before


def test_every_release_of_the_list_is_in_the_table() -> None:
    table = release_table.table(PINNED)
    assert [version for version in KNOWN if version not in table] == []


def test_expected_verdicts_follow_from_the_expected_edits() -> None:
    for pinned in PINNED:
        outcomes = [Outcome(one.edit, one.status, one.reason, "") for one in pinned.expected.edits]
        assert verdict_of(outcomes, RECIPE.means) is pinned.expected.verdict


def test_later_releases_never_need_more_than_earlier_ones() -> None:
    verdicts = [pinned.expected.verdict for pinned in PINNED]
    order = [verdict for verdict, _ in groupby(verdicts)]
    # Before the kernel, with it, with upstream's fix, and without the V1 runner.
    assert order == [
        Verdict.NOT_AFFECTED,
        Verdict.FIXABLE,
        Verdict.SUPERSEDED,
        Verdict.NOT_AFFECTED,
    ]


def test_a_release_is_listed_once_and_every_pinned_file_is_one_that_is_read() -> None:
    assert len(set(KNOWN)) == len(KNOWN)
    for pinned in PINNED:
        assert pinned.archive.startswith(f"vllm-{pinned.version}")
        assert all(wanted(file.name, pinned.source) for file in pinned.files)
        names = {file.name for file in pinned.files}
        assert "vllm/v1/worker/gpu_worker.py" in names
        if "V1 runner is gone" not in pinned.expected.why:
            assert "vllm/v1/worker/block_table.py" in names


def test_a_complete_list_is_not_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(new_releases, "versions", lambda: ("0.1.0", "0.9.0.1", *KNOWN))
    assert new_releases.main() == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("version", ["0.21.1", "0.99.0", "1.0.0", "0.33.0.post1"])
def test_a_release_that_the_list_lacks_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    monkeypatch.setattr(new_releases, "versions", lambda: (*KNOWN, version))
    assert new_releases.main() == 1
    assert version in capsys.readouterr().out


def test_without_an_index_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(new_releases, "versions", _raises(UnreachableError("no network")))
    assert new_releases.main() == 2
    assert capsys.readouterr() == ("", "no network\n")


def _raises(error: Exception) -> Callable[[], object]:
    def call() -> object:
        raise error

    return call
