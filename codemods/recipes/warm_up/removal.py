"""Takes a recipe's own text out of a tree that upstream has fixed since, byte for byte.

A fork that is rebased over upstream's fix keeps the warm-up, its call and its tests. What reads as
a version of this tool inserted it goes; what somebody changed is left, and the detail says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import libcst as cst

from codemods.engine.checkout import WORKER, UnreadableFile
from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.recipe import Run
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.warm_up import edit_names as edits
from codemods.recipes.warm_up import unit_tests_edit
from codemods.recipes.warm_up import warmup_edit as warmup_module
from codemods.recipes.warm_up.kernel_edit import takes
from codemods.recipes.warm_up.launches import Kernel
from codemods.recipes.warm_up.worker_edit import WARMUP_MODULE, Call
from codemods.transforms import known_text, names, source
from codemods.transforms.extend_import import shortened, without_from_import
from codemods.transforms.statements import line_of, replace

# The imports inside a test, in sections that an empty line ends; an early version ended none so.
_IMPORTS = (
    r"(?:(?:    (?:from [\w.]+ import|import) [^\n]*\n(?:        \w+,\n)*(?:    \)\n)?)+\n)*\n?"
)
# What the worker's test was before 0.2.0.
_ORDER_TEST = """\
def test_worker_warms_{purpose}_up_before_the_jit_monitor():
{{imports}}    # A method is indented; a comment that names the monitor does not count.
    source = inspect.getsource({{worker}})
    nodes = ast.walk(ast.parse("if True:\\n" + source))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    lines = [(ast.unparse(call.func), call.lineno) for call in calls]
    warmup = min(n for name, n in lines if name == "{function}")
    assert all(warmup < n for name, n in lines if "jit_monitor" in name)
"""
_FILES = {
    edits.WORKER: WORKER,
    edits.UNIT_TESTS: f"../{unit_tests_edit.EXPECTED}",
    edits.WARMUP: warmup_module.MODULE,
}
_WHAT = {edits.WORKER: "the call of ", edits.UNIT_TESTS: "the test code of ", edits.WARMUP: ""}


def order_test(purpose: str, function: str) -> str:
    """The test that an early version added for the worker's call."""
    return _ORDER_TEST.format(purpose=purpose, function=function)


@dataclass(frozen=True)
class Past:
    """Every text that a version of this tool inserted for a recipe, with four-space indents and LF.

    `forms` are the function's, `tests` single functions; `parts` are what their fields stand for,
    regular expressions.
    """

    call: Call
    forms: Sequence[str]
    tests: Sequence[str]
    parameter: str
    parts: dict[str, str]

    def names(self, edit: str) -> re.Pattern[str]:
        """What is named in a file that has any of an edit's text."""
        tests = self.tests if edit == edits.UNIT_TESTS else ()
        starts = [re.match(r"def (\w+)", text) for text in tests]
        tested = [f"{start[1]}(?:_\\d+)?" for start in starts if start]
        return re.compile(rf"\b(?:{'|'.join([self.call.function, *tested])})\b")

    def known(self, edit: str) -> Iterator[re.Pattern[str]]:
        """What finds an edit's statements."""
        if edit == edits.WORKER:
            yield from self._calls()
            yield known_text.statements(self._import("{home}"), 0, home=r"[\w.]*\bgpu\.warmup")
        else:
            texts = self.forms if edit == edits.WARMUP else self.tests
            for text in texts:
                parts = {"imports": _IMPORTS, "worker": r"[\w.]+", **self.parts}
                yield known_text.statements(text, 2, **parts)

    def _calls(self) -> Iterator[re.Pattern[str]]:
        for flag in ("{path}", None):
            for imported in (f"{self._import(f'.{WARMUP_MODULE}')}\n", ""):
                text = self.call.text(flag, imported, "{path}")
                yield known_text.statements(text, 1, path=r"[\w.]+")

    def _import(self, home: str) -> str:
        return f"from {home} import {self.call.function}\n"


@dataclass(frozen=True)
class _Leftover:
    """What one edit once put into a file, and the file without it, None where it was changed."""

    edit: str
    file: SourceFile
    line: int
    what: str
    module: cst.Module | None


def remove_leftovers(
    run: Run, past: Past, reason: Reason, file: str | None, kernel: Kernel | None = None
) -> None:
    """Decide every edit of a tree that has no use for them, for the reason that `run.why` says.

    The function, its call and its tests go together or not at all: none works alone. `file` is
    named where there is no text; `kernel` is what requests launch.
    """
    found = [one for edit in _FILES for one in _leftovers(run.sources, past, edit)]
    changed = (f"{one.what} is not as this tool inserted it" for one in found if not one.module)
    kept = next(changed, None) or _used_elsewhere(run.sources, past.call.function, found)
    skipped = any(one.edit not in run.wanted for one in found)
    for one in [*found, *(_argument(kernel, past.parameter) if kernel else ())]:
        if one.module is None:
            why = "is not as this tool inserted it, so take it out by hand"
        elif kept is not None and one.edit != edits.KERNEL:
            why = f"is left, for {kept}"
        elif one.edit == edits.WARMUP and skipped:
            why = "is left, for what calls it is left too"
        else:
            _take_out(run, one)
            continue
        detail = f"{one.what} {why}"
        run.add(Outcome(one.edit, Status.NOT_NEEDED, reason, detail, one.file.name, one.line))
    there = {outcome.edit for outcome in run.outcomes}
    for edit in edits.REPORTED:
        if edit not in there:
            run.add(Outcome(edit, Status.NOT_NEEDED, reason, run.why, file))


def _take_out(run: Run, one: _Leftover) -> None:
    with run.edit(one.edit, one.file.name):
        detail = f"{one.what} is taken out: the tree needs it no longer"
        outcome = Outcome(one.edit, Status.EDIT, Reason.REMOVED, detail, one.file.name)
        run.take(Edited(outcome, one.module), one.file)


def _used_elsewhere(sources: Sources, function: str, found: Sequence[_Leftover]) -> str | None:
    """That another file of the package names the function that is to go."""
    checkout = sources.checkout
    known = {one.file.name for one in found}
    pending = ["."] if any(one.edit == edits.WARMUP for one in found) else []
    while pending:
        folder = pending.pop()
        for relative in checkout.python_files(folder):
            name = checkout.name(relative)
            with suppress(UnreadableFile):
                if name not in known and function.encode() in (checkout.read(relative) or b""):
                    return f"{name} names {function}"
        pending += (f"{folder}/{one}" for one in checkout.files.folders(checkout.name(folder)))
    return None


# The function, its call and its tests


def _leftovers(sources: Sources, past: Past, edit: str) -> Iterator[_Leftover]:
    """An edit's text, if its file has any; what cannot be read has none that could be taken out."""
    if edit == edits.UNIT_TESTS and sources.checkout.package == ".":
        return
    named = past.names(edit)
    try:
        file = sources.read(_FILES[edit])
    except Refusal:
        return
    if file is None or not named.search(file.data.decode("latin-1")):
        return
    module = _without(file, past, edit)
    left = next((line for line in module.code.split("\n") if named.search(line)), None)
    lines = file.module.code.split("\n")
    line = next(
        i for i, one in enumerate(lines, 1) if one == left or (not left and named.search(one))
    )
    what = _WHAT[edit] + past.call.function
    yield _Leftover(edit, file, line, what, None if left else module)


def _without(file: SourceFile, past: Past, edit: str) -> cst.Module:
    """The file without an edit's text, as far as it is as inserted."""
    code = file.module.code
    for known in past.known(edit):
        code = known_text.without(code, file.module.default_indent, known)
    module = file.module
    if code != module.code:
        try:
            module = source.parse(code.encode(module.encoding))
        except source.UnparsableSource:  # nothing else is in the block
            return module
    if edit == edits.WARMUP and len(re.findall(r"\bAny\b", module.code)) == 1:
        return without_from_import(module, "typing", "Any")
    return _without_import(module, past.call.function) if edit == edits.WORKER else module


def _without_import(module: cst.Module, function: str) -> cst.Module:
    for statement in names.statements(module):
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if isinstance(small, cst.ImportFrom) and _is_of_warmup(small):
            less = shortened(module, small, function)
            if less is not None:
                return replace(module, {small: less})
    return module


def _is_of_warmup(node: cst.ImportFrom) -> bool:
    return f".{names.import_module(node)}".endswith(f".{WARMUP_MODULE}")


# The decorator's argument


def _argument(kernel: Kernel, parameter: str) -> Iterator[_Leftover]:
    """The parameter in do_not_specialize of a kernel that has it no longer."""
    if takes(kernel, parameter):
        return
    module = kernel.file.module
    entry = f'"{parameter}"'
    listed = rf"do_not_specialize=\[{entry}\]"
    inserted = rf"\({listed}\)$|, {listed}|(?<=[\w\"]), {entry}(?=\])"
    by: dict[cst.CSTNode, cst.CSTNode] = {}
    for definition in kernel.definitions:
        for call in (one.decorator for one in definition.decorators):
            code = module.code_for_node(call)
            if entry in code:
                by[call] = cst.parse_expression(re.sub(inserted, "", code, count=1))
    if by:
        changed = any(entry in module.code_for_node(less) for less in by.values())
        less = None if changed else replace(module, by)
        what = f"{entry} in do_not_specialize of {kernel.name}"
        line = line_of(module, kernel.definitions[0])
        yield _Leftover(edits.KERNEL, kernel.file, line, what, less)
