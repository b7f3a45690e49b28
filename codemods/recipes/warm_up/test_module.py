"""The `unit-tests` edit: tests for a recipe's other edits, where the checkout has vLLM's tests."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.engine.checkout import Checkout
from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.warm_up import edit_names
from codemods.transforms import names
from codemods.transforms.statements import append, line_of

EXPECTED = "tests/v1/worker/test_gpu_model_runner.py"  # relative to the folder of the package
WIDTH = 88  # vLLM's line length


def find(sources: Sources) -> SourceFile | None:
    """vLLM's test module beside the package; none where the tree is the package itself."""
    return sources.read(f"../{EXPECTED}") if sources.checkout.package != "." else None


def settled(file: SourceFile | None, function: str) -> Edited | None:
    """The outcome where there is no module, or one that tests `function` already; else None."""
    if file is None:
        return Edited(
            Outcome(
                edit_names.UNIT_TESTS,
                Status.NOT_NEEDED,
                Reason.NO_TEST_MODULE,
                f"the tree has no {EXPECTED}",
            )
        )
    place = file.data.find(function.encode())
    if place < 0:
        return None
    return _present(file, place, f"the module tests {function}")


def _present(file: SourceFile, place: int, detail: str) -> Edited:
    line = file.data.count(b"\n", 0, place) + 1
    return Edited(
        Outcome(
            edit_names.UNIT_TESTS,
            Status.PRESENT,
            Reason.ALREADY_PRESENT,
            detail,
            file.name,
            line,
        )
    )


def _holds(file: SourceFile, text: str) -> bool:
    """Whether the module has these very tests."""
    return text.strip() in "\n".join(file.module.code.splitlines())


def add(file: SourceFile, parts: Sequence[str]) -> Edited:
    """Append tests, each a text of whole functions; raises Refusal."""
    if not parts:
        raise Refusal(
            Reason.NO_ANCHOR,
            "the tests are for the other edits, and none of these is in the tree or asked for",
            file.name,
        )
    text = "\n\n".join(parts)
    defined = _defined(text)
    if _holds(file, text):
        return _present(file, file.data.find(f"def {defined[0]}(".encode()), "the module has them")
    taken = [name for name in defined if names.functions(file.module, name)]
    if taken:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the module defines {taken[0]} already; rename it, or leave the tests out with "
            "--skip unit-tests",
            file.name,
            line_of(file.module, names.functions(file.module, taken[0])[0]),
        )
    count = len([name for name in defined if name.startswith("test_")])
    outcome = Outcome(
        edit_names.UNIT_TESTS,
        Status.EDIT,
        Reason.ADDED,
        f"{count} test{'s' * (count > 1)} for the other edits",
        file.name,
    )
    return Edited(outcome, append(file.module, text), marker=f"def {defined[0]}(")


def import_line(module: str, found: Sequence[str]) -> str:
    """`from MODULE import NAMES` inside a test, broken as ruff breaks it."""
    line = f"from {module} import {', '.join(sorted(found))}"
    if len(line) + 4 <= WIDTH:
        return line
    return laid_out(f"    from {module} import (", sorted(found), ")", spread=True).strip()


def module_name(checkout: Checkout, name: str) -> str:
    """The dotted name, below the package's, of the module in the file `name`."""
    inside = name if checkout.package == "." else name.removeprefix(f"{checkout.package}/")
    return inside.removesuffix(".py").replace("/", ".")


def laid_out(start: str, items: Sequence[str], end: str, *, spread: bool = False) -> str:
    """Items between brackets, a line each where they do not fit on one."""
    line = f"{start}{', '.join(items)}{',' if len(items) == 1 else ''}{end}"
    if len(line) <= WIDTH and not spread:
        return line
    lines = "".join(f"        {item},\n" for item in items)
    return f"{start}\n{lines}    {end}"


def _defined(text: str) -> list[str]:
    return [
        line.split("(")[0].removeprefix("def ")
        for line in text.splitlines()
        if line.startswith("def ")
    ]
