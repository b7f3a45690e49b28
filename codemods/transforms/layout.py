"""White space between the items of a bracketed list, so that what is added looks like the rest."""

from __future__ import annotations

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

    Comments stay with the item they stand behind.
    """
    if not isinstance(opening, cst.ParenthesizedWhitespace):
        return last, last
    if not isinstance(last, cst.ParenthesizedWhitespace):
        return bare(opening), last
    between = last.with_changes(indent=opening.indent, last_line=opening.last_line)
    return between, bare(last)


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
