"""White space between the items of a bracketed list, so that what is added looks like the rest."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

SPACE = cst.SimpleWhitespace(" ")
NOTHING = cst.SimpleWhitespace("")


def breaks(space: object) -> bool:
    """Whether white space holds a line end."""
    return isinstance(space, cst.ParenthesizedWhitespace)


def split(
    last: cst.BaseParenthesizableWhitespace, opening: cst.BaseParenthesizableWhitespace
) -> tuple[cst.BaseParenthesizableWhitespace, cst.BaseParenthesizableWhitespace]:
    """The space behind the last item, as space between two items and space before the bracket.

    Comments stay with the item they follow.
    """
    if not isinstance(opening, cst.ParenthesizedWhitespace):
        return last, last
    if not isinstance(last, cst.ParenthesizedWhitespace):
        return bare(opening), last
    between = last.with_changes(indent=opening.indent, last_line=opening.last_line)
    return between, bare(last)


def holds_comment(space: object) -> bool:
    """Whether white space inside brackets holds a comment."""
    return isinstance(space, cst.ParenthesizedWhitespace) and (
        space.first_line.comment is not None
        or any(line.comment is not None for line in space.empty_lines)
    )


class Added(NamedTuple):
    """The space before and behind an item that is put last, and whether a comma follows it."""

    before: cst.BaseParenthesizableWhitespace
    closing: cst.BaseParenthesizableWhitespace
    comma: bool


class Inside(NamedTuple):
    """White space inside brackets that hold an item: behind each comma between two, and around."""

    opening: cst.BaseParenthesizableWhitespace
    gaps: tuple[cst.BaseParenthesizableWhitespace, ...]
    closing: cst.BaseParenthesizableWhitespace
    last_comma: bool

    def with_one_more(self, step: str) -> Added:
        """Where one more item goes; `step` is a level's indent.

        Where each item has its own line, or a comment shares a line with one, the new one gets its
        own line. Comments stay with the item they follow.
        """
        if not (self._one_a_line() or self._has_comments()):
            return Added(SPACE, self.closing, self.last_comma)
        models = (self.opening, *self.gaps, line_break(step))
        model = next(one for one in models if isinstance(one, cst.ParenthesizedWhitespace))
        if not isinstance(self.closing, cst.ParenthesizedWhitespace):
            return Added(bare(model), self.closing, self.last_comma)
        between = self.closing.with_changes(indent=model.indent, last_line=model.last_line)
        # As ruff has it, a lone item may be without a comma, and several lines may not.
        return Added(between, bare(self.closing), self.last_comma or not self.gaps)

    def _has_comments(self) -> bool:
        opening = self.opening
        above = isinstance(opening, cst.ParenthesizedWhitespace) and any(
            line.comment is not None for line in opening.empty_lines
        )
        return above or any(map(holds_comment, (*self.gaps, self.closing)))

    def _one_a_line(self) -> bool:
        if self.last_comma and breaks(self.opening):
            return True
        return bool(self.gaps) and all(map(breaks, self.gaps))


def bare(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """The same line break and indentation without comments or empty lines."""
    return space.with_changes(
        first_line=cst.TrailingWhitespace(newline=space.first_line.newline), empty_lines=[]
    )


def line_break(indent: str) -> cst.ParenthesizedWhitespace:
    """A line end, the indent of the statement, and `indent` more."""
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(indent))


def deeper(space: cst.ParenthesizedWhitespace, indent: str) -> cst.ParenthesizedWhitespace:
    """The same white space with its last line indented by `indent` more."""
    last = cst.SimpleWhitespace(space.last_line.value + indent)
    return space.with_changes(last_line=last)
