"""Kernels that recipes know, in a folder without a vLLM package: a plugin's own copy.

What launches it there is not known, so no recipe edits it. The transformer alone can.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.engine.files import Disk, Files, UnreadableFile
from codemods.engine.recipe import Recipe
from codemods.transforms import source
from codemods.transforms.do_not_specialize import AddDoNotSpecialize, Merge

MAX_FILES = 5_000
COMMAND = (
    "python -m libcst.tool codemod -x --no-format codemods.transforms.commands.AddDoNotSpecialize"
)


@dataclass(frozen=True)
class Copy:
    """A definition of a kernel; `why` says why the transformer leaves it, None where it edits."""

    file: str
    line: int
    kernel: str
    parameter: str
    why: str | None


def kernels_elsewhere(root: Path, recipes: Sequence[Recipe]) -> str | None:
    """What the folder has of the recipes' kernels, and the command that edits it; None without."""
    found = [*_copies(Disk(root), recipes)]
    if not found:
        return None
    first = next((one for one in found if one.why is None), found[0])
    if first.why is not None:
        return f"{first.file}:{first.line}: {first.why}"
    files = [one.file for one in found if (one.kernel, one.why) == (first.kernel, None)]
    paths = " ".join(shlex.quote(str(root / file)) for file in dict.fromkeys(files))
    return (
        f"{first.file}:{first.line} defines {first.kernel}; to list {first.parameter} in its "
        f"do_not_specialize: {COMMAND} --kernel {first.kernel} --param {first.parameter} {paths}"
    )


def _copies(files: Files, recipes: Sequence[Recipe]) -> Iterator[Copy]:
    parameters = {name: one for recipe in recipes for name, one in recipe.kernels.items()}
    if not parameters:
        return
    defined = re.compile(rb"^[ \t]*def (%b)\(" % "|".join(parameters).encode(), re.MULTILINE)
    for file in _python_files(files):
        try:
            data = files.read(file) or b""
        except UnreadableFile:
            continue
        for match in defined.finditer(data):
            kernel = match[1].decode()
            line = data.count(b"\n", 0, match.start()) + 1
            why = _why_left(data, kernel, parameters[kernel])
            yield Copy(file, line, kernel, parameters[kernel], why)


def _python_files(files: Files) -> Iterator[str]:
    """The folder's modules, those at its top first; of a great many, the first."""
    pending = [""]
    left = MAX_FILES
    while pending and left > 0:
        folder = pending.pop(0)
        for name in files.names(folder or "."):
            if name.endswith(".py"):
                left -= 1
                yield f"{folder}{name}"
        pending += [f"{folder}{name}/" for name in files.folders(folder or ".")]


def _why_left(data: bytes, kernel: str, parameter: str) -> str | None:
    try:
        module = source.parse(data)
        transformer = AddDoNotSpecialize(module, kernel, parameter)
        module.visit(transformer)
    except source.UnparsableSource as error:
        return f"it defines {kernel}, and cannot be parsed: {error}"
    except RecursionError:  # the parser took it, and LibCST's own walk does not
        return f"it defines {kernel}, and is nested too deeply"
    if not {Merge.ADDED, Merge.MERGED}.isdisjoint(transformer.merges):
        return None
    if Merge.PRESENT in transformer.merges:
        return f"do_not_specialize of {kernel} has {parameter} already"
    return next(iter(transformer.left), f"what {kernel} has in do_not_specialize cannot be read")
