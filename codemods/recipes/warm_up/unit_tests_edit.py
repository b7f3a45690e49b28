"""The `unit-tests` edit: tests for a recipe's other edits, where the checkout has vLLM's tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codemods.engine.checkout import Checkout, is_module_name
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


def package_name(file: SourceFile, checkout: Checkout) -> str:
    """The name by which the module imports the package, else the package's own; raises Refusal."""
    own = checkout.package_name
    modules = [one.module for one in names.imports(file.module)]
    if any(f"{module}.".startswith(f"{own}.") for module in modules):
        return own
    found = {root for module in modules for root in _roots(checkout, module)}
    if len(found) == 1:
        return found.pop()
    if not found and is_module_name(own):
        return own
    by = f"it imports it by {' and '.join(sorted(found))}" if found else "it imports none of it"
    raise Refusal(
        Reason.AMBIGUOUS,
        f"expected the test module to import the package {own} by one name, found that {by}; "
        "--skip unit-tests leaves the tests out",
        file.name,
    )


def _roots(checkout: Checkout, module: str) -> Iterator[str]:
    """The parts before those of a module's name that are a path in the package."""
    parts = module.split(".")
    for count in range(1, len(parts)):
        inside = checkout.name("/".join(parts[count:]))
        if any(checkout.files.exists(f"{inside}{end}") for end in (".py", "/__init__.py")):
            yield ".".join(parts[:count])


def nothing_to_add(file: SourceFile | None, function: str) -> Edited | None:
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


# What a test may use of other packages, by the name that it has for it.
_OTHERS = {
    "MagicMock": ("unittest.mock", "MagicMock"),
    "SimpleNamespace": ("types", "SimpleNamespace"),
    "np": ("numpy", None),
    "pytest": ("pytest", None),
    "torch": ("torch", None),
}
_STANDARD = ("MagicMock", "SimpleNamespace")


def imports(file: SourceFile, uses: Sequence[str], *own: tuple[str, Sequence[str]]) -> str:
    """The imports that a test needs beside the module's own, each on a line inside the test.

    `uses` are names of `_OTHERS`, `own` are modules of the package and names of them. An empty
    line ends what is not empty.
    """
    bound = {one.local: (one.module, one.name) for one in names.run_time_imports(file.module)}
    lacks = [name for name in uses if bound.get(name) != _OTHERS[name]]
    standard = [_other_line(name) for name in lacks if name in _STANDARD]
    others = [_other_line(name) for name in lacks if name not in _STANDARD]
    lines = []
    for module, wanted in own:
        missing = [name for name in wanted if bound.get(name) != (module, name)]
        lines += [_own_line(module, missing)] if missing else []
    sections = ["".join(sorted(part)) for part in (standard, others, lines) if part]
    return "".join(f"{section}\n" for section in sections)


def _other_line(name: str) -> str:
    module, member = _OTHERS[name]
    if member is not None:
        return f"    from {module} import {member}\n"
    return f"    import {module}{f' as {name}' if name != module else ''}\n"


def _own_line(module: str, found: Sequence[str]) -> str:
    """`from MODULE import NAMES`, broken as ruff breaks it."""
    line = f"    from {module} import {', '.join(sorted(found))}"
    if len(line) <= WIDTH:
        return f"{line}\n"
    return f"{laid_out(f'    from {module} import (', sorted(found), ')', spread=True)}\n"


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
