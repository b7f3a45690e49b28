"""CONTRIBUTING.md: its worked example is taken from the page and run, and what it names is there.

The example's folder goes into a copy of the code and nothing else of the copy changes. Each command
is a process of its own in that copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruff.__main__ import find_ruff_bin

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SCHEMA = json.loads((ROOT / "docs/schema.json").read_text("utf-8"))

FOLDER = "codemods/recipes/copy_blocks"
RECIPE_FILES = ("recipe.py", "proofs/__init__.py", "README.md")
COPIER = "v1/worker/block_copier.py"
CHANGED = {
    "vllm/v1/worker/block_copier.py": "kernel",
    "vllm/v1/worker/gpu/warmup.py": "warmup",
    "vllm/v1/worker/gpu_worker.py": "worker",
}
WHY = "Nothing copies a block before the first request, which waits for the compile."
FORMATS = ("unified", "git", "dep3")


def example(name: str) -> str:
    found = re.findall(rf"<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```\n", PAGE, re.DOTALL)
    assert len(found) == 1, f"CONTRIBUTING.md has {len(found)} examples {name!r}"
    return str(found[0])


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts and path.is_file()
    }


@dataclass(frozen=True)
class Ran:
    """One run of the command."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.stdout)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        return document

    @property
    def recipe(self) -> dict[str, Any]:
        (recipe,) = self.json["recipes"]
        return dict(recipe)


@dataclass(frozen=True)
class Clone:
    """A copy of the code with the example's folder in it."""

    root: Path

    def run(self, verb: str, tree: Path, *options: str, recipe: str = "copy-blocks") -> Ran:
        argv = [sys.executable, "-m", "codemods", verb, str(tree), "--recipe", recipe, *options]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "SOURCE_DATE_EPOCH": "0"}
        ran = subprocess.run(
            argv, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in ran.stderr
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("clone")
    # Other tests write to the cache that Python has for its modules.
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "codemods", root / "codemods", ignore=ignored)
    for name in RECIPE_FILES:
        path = root / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example(name), "utf-8")
    return Clone(root)


def tree_at(root: Path, copier: str | None) -> Path:
    """The base of the fixtures, and beside its block tables the example's `copier`."""
    shutil.copytree(ROOT / "fixtures/forks/base", root, dirs_exist_ok=True)
    if copier is not None:
        (root / "vllm" / COPIER).write_text(copier, "utf-8")
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tree_at(tmp_path / "tree", example(COPIER))


@pytest.fixture(scope="module")
def applied(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """A tree after `apply`, and what that printed."""
    tree = tree_at(tmp_path_factory.mktemp("applied"), example(COPIER))
    return tree, clone.run("apply", tree, "--json")


def test_check_names_the_edits_and_says_why(clone: Clone, tree: Path) -> None:
    before = files(tree)
    ran = clone.run("check", tree)
    assert (ran.code, ran.stderr) == (1, "")
    assert WHY in ran.stdout
    for edit, detail in {
        "kernel": 'do_not_specialize=["num_blocks"] on _copy_blocks_kernel',
        "warmup": "warmup_copy_blocks_kernel copies the null block",
        "worker": "calls warmup_copy_blocks_kernel before the JIT monitor is activated",
    }.items():
        assert re.search(rf"^ *{edit} .*{re.escape(detail)}$", ran.stdout, re.MULTILINE)
    assert files(tree) == before


def test_markdown_has_the_recipes_title(clone: Clone, tree: Path) -> None:
    ran = clone.run("check", tree, "--format", "markdown")
    assert ran.code == 1
    assert ran.stdout.startswith(f"## Block copy warm-up: fixable\n\n{WHY}")
    rows = re.findall(r"^\| (\w+) \| edit \| [\w-]+ \| vllm/", ran.stdout, re.MULTILINE)
    assert rows == [*CHANGED.values()]


def test_json_is_as_the_schema_says(clone: Clone, tree: Path) -> None:
    ran = clone.run("check", tree, "--json")
    assert ran.code == 1
    assert (ran.recipe["recipe"], ran.recipe["why"]) == ("copy-blocks", WHY)
    assert {edit["file"]: edit["edit"] for edit in ran.recipe["edits"]} == CHANGED
    assert {file["path"] for file in ran.json["files"]} == {*CHANGED}


@pytest.mark.parametrize("form", FORMATS)
def test_a_patch_has_the_recipes_words_and_applies(
    form: str, clone: Clone, tree: Path, applied: tuple[Path, Ran]
) -> None:
    ran = clone.run("diff", tree, "--format", form)
    assert ran.code == 0
    assert example("patch") in ran.stdout
    assert "slot" not in ran.stdout
    head = ran.stdout.partition("\n--- a/")[0]
    words = (
        ("Subject: Warm up the block copy kernel before the first request\n", FORMATS[1:]),
        ("\nNothing copies a block before the first request", FORMATS[1:]),
        ("\n- kernel, vllm/v1/worker/block_copier.py:", FORMATS[1:]),
        ("\nhttps://example.org/block-copier/7\n", FORMATS[1:]),
        (" (apply --recipe copy-blocks)\n", FORMATS[1:]),
        ("\nBug: https://example.org/block-copier/7\n", FORMATS[2:]),
    )
    assert [text for text, forms in words if (text in head) is not (form in forms)] == []
    subprocess.run(["git", "apply"], input=ran.stdout, text=True, cwd=tree, check=True)
    assert files(tree) == files(applied[0])


def test_verify_proves_it(clone: Clone, tree: Path) -> None:
    before = files(tree)
    ran = clone.run("verify", tree, "--json", "--strict")
    assert [(row["recipe"], row["proof"], row["status"]) for row in ran.json["proofs"]] == [
        (None, "syntax", "pass"),
        (None, "imports", "pass"),
        (None, "lint", "pass"),
        ("copy-blocks", "order", "pass"),
    ]
    assert ran.code == 0
    assert files(tree) == before


def test_apply_changes_the_files_of_its_edits_alone(applied: tuple[Path, Ran]) -> None:
    tree, ran = applied
    assert (ran.code, ran.recipe["verdict"]) == (0, "fixed")
    before = files(ROOT / "fixtures/forks/base") | {f"vllm/{COPIER}": example(COPIER).encode()}
    after = files(tree)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {*CHANGED}


def test_a_second_apply_changes_nothing(clone: Clone, applied: tuple[Path, Ran]) -> None:
    tree, _ = applied
    before = files(tree)
    ran = clone.run("apply", tree, "--json")
    assert (ran.code, ran.recipe["verdict"]) == (0, "already-fixed")
    assert ran.recipe["why"] == "The block copy kernel is compiled before any request."
    assert files(tree) == before


@pytest.mark.parametrize(
    ("copier", "code", "status", "reason"),
    [
        (None, 0, "not-needed", "no-kernel"),
        ("class BlockCopier:\n    pass\n", 0, "not-needed", "no-kernel"),
        ("def broken(:\n", 3, "refused", "unparsable"),
    ],
    ids=["no file", "no kernel", "broken"],
)
def test_a_tree_without_the_kernel_stays_as_it_is(
    copier: str | None, code: int, status: str, reason: str, clone: Clone, tmp_path: Path
) -> None:
    tree = tree_at(tmp_path, copier)
    before = files(tree)
    ran = clone.run("apply", tree, "--json")
    assert ran.code == code
    found = {(edit["status"], edit["reason"]) for edit in ran.recipe["edits"]}
    assert found == {(status, reason)}
    assert files(tree) == before


def test_it_makes_a_series_with_the_other_recipes(clone: Clone, tree: Path) -> None:
    ran = clone.run("diff", tree, "--format", "git", recipe="all")
    made_by = re.findall(r"^Generated-by: .*--recipe ([\w-]+)\)$", ran.stdout, re.MULTILINE)
    assert (ran.code, made_by) == (0, ["slot-mapping", "copy-blocks"])


def test_no_other_file_of_the_code_changes(clone: Clone, applied: tuple[Path, Ran]) -> None:
    assert applied[1].code == 0
    own = {f"{FOLDER}/{name}" for name in RECIPE_FILES}
    was = {f"codemods/{name}": data for name, data in files(ROOT / "codemods").items()}
    now = files(clone.root)
    assert now.keys() - was.keys() == own
    assert {name: now[name] for name in was} == was


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")], ids=lambda one: one[0])
def test_the_example_is_as_ruff_wants_it(arguments: tuple[str, ...], clone: Clone) -> None:
    settings = ("--config", str(ROOT / "pyproject.toml"), "--no-cache", "-q")
    argv = [find_ruff_bin(), *arguments, *settings, str(clone.root / FOLDER)]
    ran = subprocess.run(argv, cwd=clone.root, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_every_file_that_the_page_names_is_there() -> None:
    code = r"(?:codemods|tests|fixtures|docs)/[\w/.-]*|[\w-]+\.(?:md|toml)|\.ci/run"
    names = set(re.findall(rf"`({code})`", PAGE)) - {"codemods/X/y.py", "tests/X/test_y.py"}
    assert {"codemods/engine/plan.py", "docs/schema.json"} <= names
    own = {"recipe.py", "right.toml"}  # named within their folder
    assert [name for name in sorted(names - own) if not (ROOT / name).exists()] == []


def test_every_make_target_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"^make ([\w-]+)|`make ([\w-]+)", PAGE, re.MULTILINE))
    targets = {
        line.partition(":")[0] for line in (ROOT / "Makefile").read_text("utf-8").splitlines()
    }
    assert {"test", "lint"} <= {one or other for one, other in named} <= targets
