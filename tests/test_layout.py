"""The rules that CONTRIBUTING draws, over the imports, the words and the places of the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import codemods
from codemods.engine import registry

CODE = Path(codemods.__file__).parent
TESTS = Path(__file__).parent

# What each part may import beside itself. A recipe is a part of its own; SHARED is what recipes
# have in common: the folders of recipes/ that hold no recipe.py.
SHARED = "recipes: shared"
BELOW_CLI = ("engine", "output", "write", "prove", "release")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "__main__": ("cli",),
    "cli": BELOW_CLI,
    "output": ("engine",),
    "write": ("engine",),
    "prove": ("engine",),
    "release": ("engine",),
    "engine": ("transforms",),
    "transforms": (),
    SHARED: ("engine", "prove", "transforms"),
}
OF_A_RECIPE = (SHARED, "engine", "prove", "transforms")
# A module that may import one more, and why.
IMPORTS_BESIDE = {("output/proofs.py", "codemods.prove.proof"): "it prints a proof's row"}

# Words of a recipe that mean more than it: where they may be outside, and why.
WORDS_BESIDE = {
    "engine/checkout.py": ("v1/worker/gpu_model_runner.py",),  # vLLM's package is known by it
    "prove/proof.py": ("max_num_tokens",),  # vLLM's --max-num-batched-tokens
    # What stands in for vLLM's own, in the proofs of any recipe.
    "prove/standins.py": (
        "CpuGpuBuffer",
        "SimpleNamespace",  # Python's
        "get_dcp_group",
        "get_pcp_group",
        "pin_memory",
        "current_platform",
    ),
    "prove/pretended_gpu.py": ("pin_memory",),  # torch's
}

# Modules that are tested by the tests of what they are a part of.
FEW_LINES = 20
TESTED_ELSEWHERE = {
    "cli/verbs.py": "cli/test_main.py",
    "cli/planned.py": "cli/test_main.py",
    "__main__.py": "cli/test_main.py",
    "engine/bound.py": "engine/test_classes.py",
    "engine/resolve.py": "engine/test_classes.py",
    "engine/imports.py": "prove/test_imports.py",
    "prove/proof.py": "output/test_proofs.py",
    "transforms/arguments.py": "transforms/test_do_not_specialize.py",
    "transforms/layout.py": "transforms/test_statements.py",
    "recipes/warm_up/importable.py": "recipes/slot_mapping/test_check_of_planted.py",
    "recipes/warm_up/control_flow.py": "recipes/warm_up/test_order_proof.py",
    **dict.fromkeys(
        (f"recipes/warm_up/{name}.py" for name in ("worker_call", "evaluate", "tensors", "values")),
        "recipes/warm_up/test_launches.py",
    ),
    # A proof is tested on trees that are right and on trees that are wrong in one place.
    **dict.fromkeys(
        (
            *(f"prove/{name}.py" for name in ("compiled", "modules", "random_states")),
            *(f"prove/{name}.py" for name in ("pretended_gpu", "process_settings")),
            *(f"prove/{name}.py" for name in ("standins", "proof_process")),
        ),
        "recipes/slot_mapping/proofs/test_proofs.py",
    ),
    **{
        f"recipes/{recipe}/proofs/{name}.py": f"recipes/{recipe}/proofs/test_proofs.py"
        for recipe, names in {
            "slot_mapping": (
                *("compile", "engines", "job", "keys", "loading", "result", "sides", "snapshot"),
                *("state", "warming", "proof_process"),
            ),
            "kv_block_zeroing": ("caches", "compile", "job", "keys", "loading", "result", "state"),
        }.items()
        for name in names
    },
    # What they prove takes a GPU; the tests ask only what is said without one.
    "recipes/slot_mapping/proofs/gpu_compiles.py": "recipes/slot_mapping/proofs/test_proofs.py",
    "recipes/slot_mapping/proofs/gpu_cost.py": "recipes/slot_mapping/proofs/test_proofs.py",
    **dict.fromkeys(
        (
            f"recipes/slot_mapping/facts/{name}.py"
            for name in ("reach", "unlaunched", "simulated_tables")
        ),
        "recipes/slot_mapping/test_recipe.py",
    ),
    **dict.fromkeys(
        (
            "recipes/kv_block_zeroing/edits/warmup.py",
            *(
                f"recipes/kv_block_zeroing/facts/{name}.py"
                for name in ("runners", "upstream", "zeroer")
            ),
        ),
        "recipes/kv_block_zeroing/test_recipe.py",
    ),
}
# Test modules beside the tests of a module, or are of no one module.
MORE_TESTS = (
    "output/test_schema.py",
    "recipes/kv_block_zeroing/test_releases.py",
    "recipes/kv_block_zeroing/test_with_slot_mapping.py",
    "recipes/kv_block_zeroing/proofs/test_planted.py",
    "recipes/slot_mapping/proofs/test_planted.py",
    "recipes/slot_mapping/proofs/test_release.py",
    "recipes/slot_mapping/test_check_of_planted.py",
    "recipes/slot_mapping/test_live_requests.py",
    "recipes/warm_up/test_order_proof_for_both_runners.py",
    "recipes/warm_up/test_worker_edit_for_both_runners.py",
    "test_contributing.py",
    "test_layout.py",
    "test_readme.py",
    "write/test_disk.py",
    "write/test_faults.py",
    "write/test_kill.py",
    "write/test_on_a_release.py",
    "write/test_put.py",
)
# Folders of tests that are of the whole tool, or of what is not a part of it.
OF_THE_WHOLE = ("benchmarks", "forks", "gpu", "packaging", "releases")


@dataclass(frozen=True)
class Module:
    """A module of the package; `name` is POSIX and relative to it, such as `cli/main.py`."""

    name: str

    @property
    def text(self) -> str:
        return (CODE / self.name).read_text("utf-8")

    @property
    def part(self) -> str:
        first, _, rest = self.name.removesuffix(".py").partition("/")
        return _recipe(rest.split("/")[0]) if first == "recipes" else first

    @property
    def imports(self) -> Iterator[str]:
        """The package's own modules that it imports anywhere, and names in them, dotted."""
        here = ["codemods", *self.name.removesuffix(".py").split("/")]
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = here[: -node.level] if node.level else []
                home = ".".join([*base, *([node.module] if node.module else [])])
                found = [f"{home}.{alias.name}" for alias in node.names]
            else:
                continue
            yield from (name for name in found if name.startswith("codemods."))


def _recipe(folder: str) -> str:
    return f"recipes/{folder}" if (CODE / "recipes" / folder / "recipe.py").exists() else SHARED


MODULES = [Module(path.relative_to(CODE).as_posix()) for path in sorted(CODE.rglob("*.py"))]
OUTSIDE = [one for one in MODULES if not one.name.startswith("recipes/")]
EACH = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
EACH_OUTSIDE = pytest.mark.parametrize("module", OUTSIDE, ids=lambda module: module.name)


def part_of(dotted: str) -> str:
    _, first, *rest = dotted.split(".")
    return _recipe(rest[0]) if first == "recipes" else first


@EACH
def test_imports_go_down_only(module: Module) -> None:
    allowed = {module.part, *MAY_IMPORT.get(module.part, OF_A_RECIPE)}
    wrong = [
        name
        for name in module.imports
        if part_of(name) not in allowed
        and (module.name, name.rpartition(".")[0]) not in IMPORTS_BESIDE
    ]
    assert wrong == []


@EACH
def test_only_the_registry_reaches_a_recipe_by_its_name(module: Module) -> None:
    own = f"codemods.{module.part.replace('/', '.')}"
    others = [
        text
        for text in strings(module.text)
        if re.match(r"codemods\.recipes\b", text) and not f"{text}.".startswith(f"{own}.")
    ]
    assert others == [] or module.name == "engine/registry.py"


def strings(text: str) -> set[str]:
    """Every string that is not a docstring; of an f-string its constant parts."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    }


@cache
def words_of_recipes() -> frozenset[str]:
    """What only a recipe may name: its patch's words, vLLM's names and files that it knows."""
    about = [recipe.about for recipe in registry.every()]
    found = {text for one in about for text in (one.title, one.subject, one.origin)}
    found |= {number for one in about for number in re.findall(r"\d{4,}", one.origin)}
    for module in MODULES:
        if module.part.startswith("recipes/"):
            found |= {text for text in strings(module.text) if _is_name(text)}
    return frozenset(found)


def _is_name(text: str) -> bool:
    """A path of a module, or an identifier of several words: what no other code says by chance."""
    if re.fullmatch(r"__\w+__", text):
        return False
    return bool(
        re.fullmatch(r"(?:\w+/)+\w+\.py", text)
        or (re.fullmatch(r"_*[A-Za-z]\w*", text) and re.search(r"[a-z]_+\w|[a-z][A-Z]", text))
    )


@EACH_OUTSIDE
def test_nothing_outside_a_recipe_names_what_is_its_own(module: Module) -> None:
    tokens = set(re.findall(r"\w+", module.text))
    named = {
        word
        for word in words_of_recipes()
        if (word in tokens if re.fullmatch(r"\w+", word) else word in module.text)
    }
    assert named - set(WORDS_BESIDE.get(module.name, ())) == set()


@EACH_OUTSIDE
def test_nothing_outside_a_recipe_names_an_edit(module: Module) -> None:
    edits = {edit for recipe in registry.every() for edit in recipe.edits}
    assert strings(module.text) & edits == set()


def test_the_words_are_those_that_a_recipe_is_known_by() -> None:
    known = {
        "compute_slot_mapping",
        "num_tokens",
        "BlockTable",
        "v1/worker/block_table.py",
        "42165",
    }
    assert known <= words_of_recipes()


def test_no_exception_outlives_its_cause() -> None:
    names = {module.name for module in MODULES}
    assert {name for name, _ in IMPORTS_BESIDE} <= names
    for name, words in WORDS_BESIDE.items():
        assert set(words) <= words_of_recipes()
        assert all(word in (CODE / name).read_text("utf-8") for word in words)
    for name, place in TESTED_ELSEWHERE.items():
        assert name in names
        assert (TESTS / place).exists()
        own = place_of(name)
        assert own == place or not (TESTS / own).exists(), f"{name} has its own tests by now"


def place_of(name: str) -> str:
    """Where the tests of a module are; a package's are named for it."""
    path = Path(name)
    stem = path.parent.name if path.stem == "__init__" else path.stem.strip("_")
    return (path.parent / f"test_{stem}.py").as_posix()


@pytest.mark.parametrize(
    "module",
    [
        module
        for module in MODULES
        if module.text.count("\n") >= FEW_LINES and module.name not in TESTED_ELSEWHERE
    ],
    ids=lambda module: module.name,
)
def test_a_module_is_tested_at_its_own_path(module: Module) -> None:
    assert (TESTS / place_of(module.name)).exists()


def test_a_test_is_at_the_path_of_what_it_tests() -> None:
    expected = {place_of(module.name) for module in MODULES} | {*MORE_TESTS}
    found = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    stray = {name for name in found - expected if name.split("/")[0] not in OF_THE_WHOLE}
    assert sorted(stray) == []
    assert set(MORE_TESTS) <= found
