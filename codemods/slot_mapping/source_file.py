"""A parsed file of the checkout: what the edits look at and change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from codemods.checkout import Checkout, UnreadableFile
from codemods.outcome import EditName, Outcome, Reason, Status
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

    def outcome(self, edit: EditName) -> Outcome:
        return Outcome(edit, Status.REFUSED, self.reason, self.detail, self.file, self.line)


@dataclass(frozen=True)
class SourceFile:
    """A file's name relative to the tree's root, its bytes, and its module once it is asked for."""

    name: str
    data: bytes

    @classmethod
    def read(cls, checkout: Checkout, relative: str) -> SourceFile | None:
        """None where there is no such file; Refusal where it cannot be read."""
        try:
            data = checkout.read(relative)
        except UnreadableFile as error:
            raise Refusal(
                Reason.UNREADABLE, f"cannot be read: {error.why}", checkout.name(relative)
            ) from None
        return None if data is None else cls(checkout.name(relative), data)

    @cached_property
    def module(self) -> cst.Module:
        try:
            return source.parse(self.data)
        except source.UnparsableSource as error:
            raise Refusal(
                Reason.UNPARSABLE, f"cannot be parsed: {error}", self.name, error.line
            ) from None
