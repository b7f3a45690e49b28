"""A parsed file of the checkout: what the edits look at and change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from codemods.engine.checkout import Checkout, UnreadableFile
from codemods.engine.plan import Outcome, Reason, Status
from codemods.transforms import source


class Refusal(Exception):
    """An edit that the tool cannot show to be right; it becomes the edit's outcome."""

    def __init__(
        self, reason: Reason, detail: str, file: str | None = None, line: int | None = None
    ) -> None:
        self.reason = reason
        self.detail = detail
        self.file = file
        self.line = line
        super().__init__(detail)

    def outcome(self, edit: str) -> Outcome:
        return Outcome(edit, Status.REFUSED, self.reason, self.detail, self.file, self.line)


class Edited(NamedTuple):
    """The result of an edit: its outcome and, where it changes a file, the new module.

    `marker` is text whose line the outcome points at; where it is empty, the first changed line.
    """

    outcome: Outcome
    module: cst.Module | None = None
    marker: str = ""

    def outcome_on_its_line(self, before: bytes, after: bytes) -> Outcome:
        """The outcome with the line, in `after`, on which the edit's own code starts."""
        lines = after.splitlines()
        if self.marker:
            line = after[: after.rindex(self.marker.encode())].count(b"\n")
            while line and lines[line - 1].startswith(b"@"):
                line -= 1
        else:
            pairs = zip(before.splitlines(), lines, strict=False)
            last = max(len(lines) - 1, 0)
            line = next((i for i, (old, new) in enumerate(pairs) if old != new), last)
        return replace(self.outcome, line=line + 1)


@dataclass(frozen=True)
class SourceFile:
    """A file's name relative to the tree's root, its bytes, and its module once it is asked for."""

    name: str
    data: bytes

    @classmethod
    def made(cls, name: str, data: bytes, module: cst.Module) -> SourceFile:
        """A file whose module is known already, so that it is not parsed."""
        file = cls(name, data)
        file.__dict__["module"] = module
        return file

    @cached_property
    def module(self) -> cst.Module:
        _ = self.tree  # refuses what is nested too deeply for LibCST's parser
        with self._unparsable_refused():
            return source.parse(self.data, checked=True)

    @cached_property
    def tree(self) -> ast.Module | None:
        """The module as the running Python reads it, None where it is too old for its syntax."""
        with self._unparsable_refused():
            return source.syntax_tree(self.data)

    def require_syntax(self) -> None:
        """Raise Refusal where the running Python does not accept what LibCST can parse."""
        if self.tree is None:
            raise Refusal(
                Reason.UNPARSABLE,
                "the running Python does not accept the file's syntax; where that is newer, run "
                "this tool with a newer Python",
                self.name,
            )

    @contextmanager
    def _unparsable_refused(self) -> Iterator[None]:
        try:
            yield
        except source.MergeConflict as conflict:
            raise Refusal(
                Reason.UNPARSABLE,
                f"unresolved merge conflict in {self.name}:{conflict.line}",
                self.name,
                conflict.line,
            ) from None
        except source.UnparsableSource as error:
            raise Refusal(
                Reason.UNPARSABLE, f"cannot be parsed: {error}", self.name, error.line
            ) from None


@dataclass(frozen=True)
class Sources:
    """The checkout's files, each read and parsed once."""

    checkout: Checkout
    _known: dict[str, SourceFile | None] = field(default_factory=dict)

    def read(self, relative: str) -> SourceFile | None:
        """None where there is no such file; raises Refusal where it is there and not to be had."""
        name = self.checkout.name(relative)
        if name not in self._known:
            try:
                data = self.checkout.read(relative)
            except UnreadableFile as error:
                raise Refusal(Reason.UNREADABLE, f"cannot be read: {error.why}", name) from None
            if data is None and self.checkout.left_out(relative):
                raise Refusal(
                    Reason.OUTSIDE_SPARSE_CHECKOUT,
                    "git tracks it and the sparse checkout leaves it out: "
                    "bring it in with git sparse-checkout add",
                    name,
                )
            self._known[name] = None if data is None else SourceFile(name, data)
        return self._known[name]

    def put(self, file: SourceFile) -> None:
        """From here on the file reads as it is after an edit."""
        self._known[file.name] = file

    def module(self, file: SourceFile, dotted: str) -> SourceFile | None:
        """The package's own file behind a module's name, relative to `file` when it has dots."""
        stem = self._stem(file, dotted)
        if stem is None:
            return None
        if not stem:
            return self.read("__init__.py")
        return self.read(f"{stem}.py") or self.read(f"{stem}/__init__.py")

    def _stem(self, file: SourceFile, dotted: str) -> str | None:
        """A module's path in the package, without its ending; None for other packages' modules."""
        if dotted.startswith("."):
            level = len(dotted) - len(dotted.lstrip("."))
            package = self.checkout.package if self.checkout.package != "." else ""
            parts = file.name.removeprefix(f"{package}/" if package else "").split("/")[:-level]
            rest = dotted.lstrip(".")
            return "/".join([*parts, *filter(None, rest.split("."))])
        parts = dotted.split(".")
        for above, part in enumerate(parts):
            if part == self.checkout.package_name and self._is_below(parts[:above]):
                return "/".join(parts[above + 1 :])
        return None

    def _is_below(self, packages: list[str]) -> bool:
        """Whether the package is in folders of these names: it may be part of a bigger one."""
        if not packages:
            return True
        folder = (self.checkout.root.resolve() / self.checkout.package).parent
        return list(folder.parts[-len(packages) :]) == packages
