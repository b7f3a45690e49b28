"""What a dotted name of a module means: a function, a class or a value, and who defines it.

Followed through the package's own imports, re-exports, star imports and plain aliases; nothing is
executed. This lists all that a name may mean; `bound` finds what it means once the code has run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from codemods.engine.sources import SourceFile, Sources
from codemods.transforms import names


@dataclass(eq=False)
class Definition:
    """A function, a class, or the value of an assignment, and the file that has it."""

    file: SourceFile
    node: cst.FunctionDef | cst.ClassDef | cst.BaseExpression


def definitions(sources: Sources, file: SourceFile, path: str) -> tuple[Definition, ...]:
    """Every definition that a dotted name of the module may mean; none where it has none.

    Behind `if` and `try` too, since nothing says which arm runs. A name that an assignment gives
    another name to is followed; any other value is its own definition.
    """
    return tuple(_Search(sources, set()).named(file, path))


def imported(
    sources: Sources, file: SourceFile, bound: names.Imported, rest: str = ""
) -> tuple[Definition, ...]:
    """The same for `local.REST`, where `local` is what an import in `file` binds."""
    return tuple(_Search(sources, set()).imported(file, bound, rest))


@dataclass(eq=False)
class _Search:
    sources: Sources
    seen: set[tuple[str, str]]

    def named(self, file: SourceFile, path: str) -> list[Definition]:
        if (file.name, path) in self.seen:
            return []
        self.seen.add((file.name, path))
        first, _, rest = path.partition(".")
        defined = () if rest else names.definitions(file.module).get(first, ())
        found = [Definition(file, node) for node in defined]
        return found or self._assigned(file, first, rest) or self._brought_in(file, first, rest)

    def _assigned(self, file: SourceFile, name: str, rest: str) -> list[Definition]:
        found: list[Definition] = []
        for target, value in names.assignments(file.module):
            if target != name:
                continue
            alias = names.dotted(value)
            if alias is not None:
                found += self.named(file, f"{alias}.{rest}" if rest else alias)
            elif not rest:
                found.append(Definition(file, value))
        return found

    def _brought_in(self, file: SourceFile, name: str, rest: str) -> list[Definition]:
        for one in names.imports(file.module):
            if one.local == name:
                return self.imported(file, one, rest)
        path = f"{name}.{rest}" if rest else name
        homes = (self.sources.module(file, one) for one in names.star_imports(file.module))
        found = (self.named(home, path) for home in homes if home is not None)
        return next(filter(None, found), [])

    def imported(self, file: SourceFile, bound: names.Imported, rest: str) -> list[Definition]:
        module, name = bound.origin(rest)
        home = self.sources.module(file, module)
        if home is None or _is_number(home.data, name):
            return []
        return self.named(home, name)


def _is_number(data: bytes, name: str) -> bool:
    """Whether a module binds a name once, to a number: PAD_SLOT_ID is not worth a parse."""
    word = re.escape(name.encode())
    bindings = re.findall(
        rb"^[ \t]*%b\b[ \t]*[:=].*$|\b(?:def|class|as|import)\b.*\b%b\b" % (word, word),
        data,
        re.MULTILINE,
    )
    number = rb"%b(?:[ \t]*:[ \t]*\w+)?[ \t]*=[ \t]*-?\d+[ \t]*(?:#.*)?\r?" % word
    return len(bindings) == 1 and re.fullmatch(number, bindings[0]) is not None
