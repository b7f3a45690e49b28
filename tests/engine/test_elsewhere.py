"""What is found of a folder that holds no vLLM package and has a recipe's kernel."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from libcst.tool import main

from codemods.engine import registry
from codemods.engine.elsewhere import kernels_elsewhere

RECIPE = replace(registry.every()[0], kernels={"_scale_kernel": "rows"})
KERNEL = "import triton\n\n\n@triton.jit\ndef _scale_kernel(rows, out_ptr):\n    pass\n"
LISTED = KERNEL.replace("jit", 'jit(do_not_specialize=["rows"])')


def message(root: Path, files: dict[str, str]) -> str | None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return kernels_elsewhere(root, [RECIPE])


def test_the_command_that_is_named_edits_the_copies(tmp_path: Path) -> None:
    root = tmp_path / "a plugin"
    files = {"acme/ops/scale.py": KERNEL, "acme/other.py": KERNEL, "acme/done.py": LISTED}
    found = message(root, files)
    assert found is not None
    assert found.startswith("acme/other.py:5 defines _scale_kernel; to list rows in its")
    _, _, command = found.partition(": python -m libcst.tool ")
    main("libcst.tool", shlex.split(command))
    assert [(root / name).read_text() for name in files] == [LISTED] * 3
    assert kernels_elsewhere(root, [RECIPE]) == (
        "acme/done.py:5: do_not_specialize of _scale_kernel has rows already"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (KERNEL.replace("rows", "n"), "_scale_kernel has no parameter rows; its parameters are n,"),
        (KERNEL.replace("rows", "rows: tl.constexpr"), "rows of _scale_kernel is a constexpr"),
        (KERNEL.replace("triton", "numba"), "no decorator that the tool knows as Triton's jit"),
        (KERNEL + "x = = 1\n", "cannot be parsed: syntax error on line 7"),
        (LISTED.replace('["rows"]', "NAMES"), "cannot be read"),
    ],
)
def test_a_copy_that_no_command_edits_is_named_with_the_reason(
    text: str, why: str, tmp_path: Path
) -> None:
    found = message(tmp_path, {"acme/scale.py": text})
    assert found is not None
    assert found.startswith("acme/scale.py:5: ")
    assert why in found
    assert "python" not in found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scale.txt", KERNEL),
        (".venv/scale.py", KERNEL),
        ("scale.py", KERNEL.replace("_scale_kernel", "_scale_kernels")),
        ("scale.py", "from ops import _scale_kernel\n"),
    ],
)
def test_nothing_is_found_of_a_folder_without_one(name: str, text: str, tmp_path: Path) -> None:
    assert message(tmp_path, {name: text}) is None
