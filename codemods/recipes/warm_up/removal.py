"""Takes a recipe's own text out of a tree that upstream has fixed since, byte for byte.

A fork that is rebased over upstream's fix keeps the warm-up, its call and its tests. What reads as
a version of this tool inserted it goes; what somebody changed is left, and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from codemods.engine.checkout import WORKER
from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.recipe import Run
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.recipes.warm_up import edit_names as edits
from codemods.recipes.warm_up import module as warmup_module
from codemods.recipes.warm_up import test_module
from codemods.recipes.warm_up.worker import WARMUP_MODULE
from codemods.transforms import names
from codemods.transforms.extend_import import shortened, without_from_import
from codemods.transforms.statements import remove, replace

# Imports inside a test, in sections that an empty line ends.
_IMPORTS = (
    r"(?:(?:    (?:from [\w.]+ import|import) [^\n]*\n(?:        \w+,\n)*(?:    \)\n)?)+\n)*\n?"
)


def pattern(*texts: str, **parts: str) -> re.Pattern[str]:
    """A pattern for texts in which `$name` or `${name}` stands for a part, itself a regular expression.

    `$imports` stands for the imports of a test.
    """
    known = {"imports": _IMPORTS, **parts}
    found = [
        "".join(
            f"(?:{known[piece.strip('${}')]})" if piece.startswith("$") else re.escape(piece)
            for piece in re.split(r"(\$\w+|\$\{\w+\})", text)
        )
        for text in texts
    ]
    return re.compile("|".join(found))


@dataclass(frozen=True)
class Past:
    """What any version of this tool inserted for a recipe, with four-space indents and LF.

    `warmup` is the function, `call` what the worker was given, with the comment above it, and
    `tests` each function of the tests; `tested` finds their names.
    """

    function: str
    warmup: re.Pattern[str]
    call: re.Pattern[str]
    tests: re.Pattern[str]
    tested: re.Pattern[bytes]

    @cached_property
    def named(self) -> re.Pattern[bytes]:
        return re.compile(rb"\b%b\b" % self.function.encode())


@dataclass(frozen=True)
class _Part:
    """What one edit once put into a file: the file without it, None where somebody changed it."""

    edit: str
    file: SourceFile
    word: str
    what: str
    module: cst.Module | None


def remove_leftovers(run: Run, past: Past, why: str, file: str | None) -> None:
    """Decide every edit of a tree that upstream has fixed; `why` and `file` say how.

    The function, its call and the tests of it go together or not at all: none works alone.
    """
    sources = run.sources
    found = [*_warmup(sources, past), *_worker(sources, past), *_tests(sources, past)]
    changed = next((part for part in found if part.module is None), None)
    skipped = any(part.edit not in run.wanted for part in found)
    for part in found:
        if changed is not None:
            run.add(_left(part, changed))
        elif part.edit == edits.WARMUP and skipped:
            run.add(_needed(part))
        else:
            run.take(_taken(part), part.file)
    for edit in edits.REPORTED:
        if edit not in {part.edit for part in found}:
            run.add(Outcome(edit, Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM, why, file))


def _left(part: _Part, changed: _Part) -> Outcome:
    detail = f"{part.what} is left, for {changed.what} was changed"
    if part is changed:
        detail = (
            f"{part.what} is not as this tool inserted it, and is left; upstream has its own fix, "
            "so take it out by hand"
        )
    return _outcome(part, Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM, detail)


def _needed(part: _Part) -> Outcome:
    detail = f"{part.what} is left, for what calls it is left too"
    return _outcome(part, Status.NOT_NEEDED, Reason.SUPERSEDED_UPSTREAM, detail)


def _taken(part: _Part) -> Edited:
    detail = f"{part.what} is taken out; upstream has its own fix"
    return Edited(_outcome(part, Status.EDIT, Reason.REMOVED, detail), part.module)


def _outcome(part: _Part, status: Status, reason: Reason, detail: str) -> Outcome:
    line = part.file.data[: part.file.data.index(part.word.encode())].count(b"\n") + 1
    return Outcome(part.edit, status, reason, detail, part.file.name, line)


def _read(sources: Sources, relative: str, wanted: re.Pattern[bytes]) -> SourceFile | None:
    """A file with such text; what cannot be read holds nothing that could be taken out."""
    try:
        file = sources.read(relative)
    except Refusal:
        return None
    return file if file is not None and wanted.search(file.data) else None


# The function


def _warmup(sources: Sources, past: Past) -> Iterator[_Part]:
    file = _read(sources, warmup_module.MODULE, past.named)
    if file is None:
        return
    found = names.functions(file.module, past.function)
    module = None
    if len(found) == 1 and _is(file, found[0], past.warmup) and _is_named(file, past, 1):
        module = _without_any(remove(file.module, found, blank_lines=2))
    yield _Part(edits.WARMUP, file, past.function, past.function, module)


def _without_any(module: cst.Module) -> cst.Module:
    """The module without the import of Any that came with the function, where nothing uses it."""
    rest = [one for one in module.body if not _is_import(one)]
    if any(re.search(r"\bAny\b", module.code_for_node(one)) for one in rest):
        return module
    return without_from_import(module, "typing", "Any")


def _is_import(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(
        statement.body[0], (cst.Import, cst.ImportFrom)
    )


# Its call


def _worker(sources: Sources, past: Past) -> Iterator[_Part]:
    file = _read(sources, WORKER, past.named)
    if file is None:
        return
    module = _without_call(file, past)
    if module is not None and past.named.search(module.bytes):
        module = None
    yield _Part(edits.WORKER, file, past.function, f"the call of {past.function}", module)


def _without_call(file: SourceFile, past: Past) -> cst.Module | None:
    """The worker without the import and the one call, None where there is no such call."""
    module = _without_import(file.module, past.function)
    for block in _blocks(module):
        for first in range(len(block)):
            for count in (1, 2):
                statements = block[first : first + count]
                if past.call.fullmatch(_text(module, statements)):
                    return remove(module, statements, blank_lines=1)
    return None


def _blocks(module: cst.Module) -> Iterator[tuple[cst.BaseStatement, ...]]:
    """The blocks of the module's classes' methods."""
    for owner in names.classes(module):
        for method in names.walk(owner.body):
            if isinstance(method, cst.FunctionDef):
                pending = [method.body]
                while pending:
                    block = names.statements(pending.pop())
                    yield block
                    pending += [suite for one in block for suite in names.suites(one)]


def _without_import(module: cst.Module, function: str) -> cst.Module:
    for statement in names.statements(module):
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if isinstance(small, cst.ImportFrom) and _is_of_warmup(small):
            less = shortened(small, function)
            if less is None:
                return remove(module, [statement], blank_lines=0)
            if less is not small:
                return replace(module, {small: less})
    return module


def _is_of_warmup(node: cst.ImportFrom) -> bool:
    return f".{names.import_module(node)}".endswith(f".{WARMUP_MODULE}")


# The tests


def _tests(sources: Sources, past: Past) -> Iterator[_Part]:
    if sources.checkout.package == ".":
        return
    file = _read(sources, f"../{test_module.EXPECTED}", past.tested)
    if file is None:
        return
    found = [
        one
        for one in names.statements(file.module)
        if isinstance(one, cst.FunctionDef) and past.tested.search(one.name.value.encode())
    ]
    ours = [one for one in found if _is(file, one, past.tests)]
    module = remove(file.module, ours, blank_lines=2)
    changed = next((one for one in found if one not in ours), None)
    if changed is not None or past.named.search(module.bytes):
        word = changed.name.value if changed is not None else past.function
        yield _Part(edits.UNIT_TESTS, file, word, word, None)
    elif ours:
        what = f"{len(ours)} function{'s' * (len(ours) > 1)} of the tests"
        yield _Part(edits.UNIT_TESTS, file, ours[0].name.value, what, module)


# What is the same to the letter


def _is_named(file: SourceFile, past: Past, times: int) -> bool:
    return len(past.named.findall(file.data)) == times


def _is(file: SourceFile, function: cst.FunctionDef, past: re.Pattern[str]) -> bool:
    comment = any(line.comment is not None for line in function.leading_lines[-2:])
    bare = function.with_changes(leading_lines=[])
    return not comment and past.fullmatch(_text(file.module, [bare])) is not None


def _text(module: cst.Module, statements: Sequence[cst.BaseStatement]) -> str:
    """Statements with four-space indents and LF, without the empty lines above them."""
    code = "".join(module.code_for_node(one) for one in statements)
    lines = [_four_spaces(line, module.default_indent) for line in code.splitlines()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _four_spaces(line: str, step: str) -> str:
    depth = 0
    while step and line.startswith(step, depth * len(step)):
        depth += 1
    return "    " * depth + line[depth * len(step) :]
