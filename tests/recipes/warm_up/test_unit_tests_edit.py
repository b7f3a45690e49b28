"""Tests that are added to vLLM's test module: where, and by which name they import the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.plan import Plan, Reason, Status, Verdict
from codemods.engine.planning import make_plan
from codemods.engine.sources import Refusal, SourceFile
from codemods.recipes.warm_up import unit_tests_edit as added_tests
from tests.checkouts import checkout
from tests.forks import trees

PARTS = ["def test_one():\n    assert f(1)\n", "def test_two():\n    assert f(2)\n"]
BEFORE = "import f\n"
AFTER = f"{BEFORE}\n\n{PARTS[0]}\n\n{PARTS[1]}"


def file(text: str) -> SourceFile:
    return SourceFile("tests/test_f.py", text.encode())


def test_tests_are_put_at_the_end() -> None:
    edited = added_tests.add(file(BEFORE), PARTS)
    assert edited.module is not None
    assert edited.module.code == AFTER
    assert edited.outcome.detail == "2 tests for the other edits"


@pytest.mark.parametrize("text", [AFTER, AFTER.replace("\n", "\r\n"), f"{AFTER}\n\nx = 1\n"])
def test_a_second_run_finds_them(text: str) -> None:
    edited = added_tests.add(file(text), PARTS)
    assert edited.module is None
    assert (edited.outcome.status, edited.outcome.line) == (Status.PRESENT, 4)


def test_tests_of_these_names_that_say_something_else_are_refused() -> None:
    with pytest.raises(Refusal, match="defines test_one already") as caught:
        added_tests.add(file(AFTER.replace("f(1)", "f(3)")), PARTS)
    assert caught.value.reason is Reason.AMBIGUOUS


# The package's name

TESTS = "tests/v1/worker/test_gpu_model_runner.py"
OF_VLLM = "import pytest\n\nimport vllm.v1.worker.gpu_model_runner as runner_module\n"
FILES = {"v1/worker/gpu_model_runner.py": "", "config/__init__.py": "", "utils.py": ""}


def name(root: Path, text: str, folder: str = "vllm") -> str:
    checkout(root, FILES)
    (root / "vllm").rename(root / folder)
    return added_tests.package_name(SourceFile(TESTS, text.encode()), Checkout(root, folder))


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("import pytest\n", "vllm", "vllm"),
        ("import torch.utils\n", "vllm", "vllm"),
        (OF_VLLM, "vllm", "vllm"),
        (OF_VLLM, "real", "vllm"),
        (OF_VLLM, "vllm-0.21.0", "vllm"),
        (OF_VLLM, "my vllm", "vllm"),
        (OF_VLLM, "class", "vllm"),
        ("from acme.vllm.v1.worker import gpu_model_runner\n", "vllm", "vllm"),
        ("from acme.vllm.v1.worker.gpu_model_runner import A\n", "vllm", "acme.vllm"),
        ("from vllm.config import A\nfrom tests.other import B\n", "src", "vllm"),
    ],
)
def test_the_tests_own_name_for_the_package_is_taken(
    tmp_path: Path, text: str, folder: str, expected: str
) -> None:
    assert name(tmp_path, text, folder) == expected


@pytest.mark.parametrize("folder", ["vllm-0.21.0", "my vllm", "class"])
def test_without_an_import_a_folder_of_no_python_name_is_refused(
    tmp_path: Path, folder: str
) -> None:
    with pytest.raises(Refusal, match="it imports none of it") as caught:
        name(tmp_path, "import pytest\n", folder)
    assert caught.value.reason is Reason.AMBIGUOUS
    assert "\n" not in caught.value.detail


def test_two_names_are_refused(tmp_path: Path) -> None:
    text = "import one.config as a\nimport two.config as b\n"
    with pytest.raises(Refusal, match="by one and two"):
        name(tmp_path, text)


# Whole trees


def plan(root: Path, folder: str, tests: str = OF_VLLM) -> Plan:
    tree = trees.fork("16-kernel-imported").tree.changed({TESTS: tests.encode()})
    tree.write_to(root)
    (root / "vllm").rename(root / folder)
    return make_plan(Checkout.find(root), registry.chosen(["all"]))


@pytest.mark.parametrize("folder", ["vllm-0.21.0", "my vllm", "class"])
def test_a_folder_of_no_python_name_is_fixed_with_tests_of_the_real_one(
    tmp_path: Path, folder: str
) -> None:
    found = plan(tmp_path, folder)
    assert found.verdict is Verdict.FIXABLE
    text = next(one.after for one in found.changes if one.path == TESTS)
    assert b"from vllm.v1.worker.gpu.warmup import" in text
    assert b"from %b." % folder.encode() not in text


def test_a_link_to_the_package_has_the_name_that_the_tests_use(tmp_path: Path) -> None:
    (tmp_path / "vllm-link").symlink_to("real")
    (tmp_path / "vllm-link").rename(tmp_path / "link")
    tree = trees.fork("16-kernel-imported").tree.changed({TESTS: OF_VLLM.encode()})
    tree.write_to(tmp_path)
    (tmp_path / "vllm").rename(tmp_path / "real")
    (tmp_path / "link").rename(tmp_path / "vllm")
    found = make_plan(Checkout.find(tmp_path), registry.chosen(()))
    assert found.verdict is Verdict.FIXABLE
    text = next(one.after for one in found.changes if one.path == TESTS)
    assert b"from vllm.v1" in text
    assert b"real." not in text


def test_without_an_import_the_workers_own_name_for_the_package_is_taken(tmp_path: Path) -> None:
    found = plan(tmp_path, "vllm-0.21.0", "import pytest\n")
    text = next(one.after for one in found.changes if one.path == TESTS)
    assert b"from vllm.v1.worker.gpu.warmup import" in text


def test_where_no_name_is_known_the_tests_are_refused_alone(tmp_path: Path) -> None:
    root = trees.fork("00-monitor-in-utils").tree.changed({TESTS: b"import pytest\n"})
    root.write_to(tmp_path)
    (tmp_path / "vllm").rename(tmp_path / "my vllm")
    worker = tmp_path / "my vllm" / trees.WORKER
    worker.write_bytes(worker.read_bytes().replace(b"from vllm.v1.", b"from ..."))
    found = make_plan(Checkout.find(tmp_path), registry.chosen(()), only=frozenset({"unit-tests"}))
    refused = [one for one in found.outcomes if one.status is Status.REFUSED]
    assert [one.edit for one in refused] == ["unit-tests"]
    assert "expected the test module to import the package my vllm by one name" in refused[0].detail
