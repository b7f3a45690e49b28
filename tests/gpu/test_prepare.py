"""prepare.py: the tool finds its packages in the site folder, and a failure is loud."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "gpu"
sys.path.insert(0, str(BENCHMARKS))

import prepare  # noqa: E402
import trees  # noqa: E402

# A tool that needs a package of the site folder alone, and refuses a tree that says so.
TOOL = """
import sys, pathlib
import only_in_site
package = pathlib.Path(sys.argv[2]) / "vllm"
if (package / "refused.py").exists():
    sys.exit("refused")
(package / "rewritten.py").write_text("")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What unpack.py lays out, of two small trees; this checkout's tool is TOOL."""
    for name in ("0.21.0", "0.23.1"):
        package = tmp_path / "trees" / name / "vllm"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "only_in_site.py").write_text("")
    checkout = tmp_path / "checkout" / "codemods"
    checkout.mkdir(parents=True)
    (checkout / "__init__.py").write_text("")
    (checkout / "__main__.py").write_text(TOOL)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(trees, "ROOT", checkout.parent)
    monkeypatch.setattr(prepare, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(prepare, "models", lambda root: "models: all made")
    monkeypatch.setattr(prepare, "imports", lambda root, tree: f"{tree.name} imports")
    monkeypatch.setattr(sys, "argv", ["prepare.py", str(tmp_path)])
    return tmp_path


def test_the_tool_finds_its_packages_in_the_site_folder(root: Path) -> None:
    assert prepare.main() == 0
    for side in ("slot-mapping", "both"):
        folder = root / "sides" / "0.21.0" / side
        assert (folder / "vllm" / "rewritten.py").exists()
        assert json.loads((folder / "served.json").read_text())["package"] == "vllm"
    assert not (root / "trees" / "0.21.0" / "vllm" / "rewritten.py").exists()


def test_a_tool_that_lacks_a_package_stops_before_serving(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "site" / "only_in_site.py").unlink()
    assert prepare.main() == 1
    last = capsys.readouterr().out.rpartition("STOP: ")[2]
    assert last.startswith("4 could not be made")
    assert "No module named 'only_in_site'" in last
    assert not list(root.glob("sides/*/*/served.json"))


def test_one_refused_tree_is_named_and_the_others_are_made(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "trees" / "0.23.1" / "vllm" / "refused.py").write_text("")
    assert prepare.main() == 1
    last = capsys.readouterr().out.rpartition("STOP: ")[2]
    assert "FAILED 0.23.1/both: " in last
    assert "0.21.0" not in last
    assert (root / "sides" / "0.21.0" / "both" / "served.json").exists()


@pytest.mark.parametrize("part", ["models", "imports"])
def test_models_and_imports_that_fail_are_loud_too(
    root: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> str:
        raise trees.Failed("does not import: no such module")

    monkeypatch.setattr(prepare, part, fail)
    assert prepare.main() == 1
