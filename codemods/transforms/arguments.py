"""Adds an argument to a call or an item to a list, in the layout of the others; breaks long lines.

Lines are broken as ruff and black break them, so that what was formatted stays so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from codemods.transforms.layout import (
    NOTHING,
    Inside,
    bare,
    breaks,
    deeper,
    holds_comment,
    line_break,
)


class Fit(NamedTuple):
    """Breaks decorators of a module that are longer than `width` characters."""

    module: cst.Module
    width: int

    def decorator(self, was: cst.Decorator, grown: cst.Decorator, indent: str) -> cst.Decorator:
        """A decorator that was added to, its lines broken where they got too long behind `indent`.

        Comments stay where they are: then only a list is broken.
        """
        call = grown.decorator
        if not isinstance(call, cst.Call) or self._fits(grown, indent):
            return grown
        if len(self._lines(was)) > 1 and not self._fits(was, indent):
            return grown
        step = self.module.default_indent
        room = self.width - _columns(indent + step)
        if any(map(holds_comment, _spaces(call))):
            listed = [self._shortened(arg, room) for arg in call.args]
            return grown.with_changes(decorator=call.with_changes(args=listed))
        *others, last = call.args
        if (
            len(self._lines(grown)) == 1
            and sum(len(self.module.code_for_node(arg)) for arg in call.args) <= room
        ):
            args = [*others, last.with_changes(whitespace_after_arg=line_break(""))]
        else:
            between = cst.Comma(whitespace_after=line_break(step))
            closing = cst.Comma(whitespace_after=line_break(""))
            args = [self._argument(arg, room).with_changes(comma=between) for arg in others]
            args.append(self._argument(last, room).with_changes(comma=closing))
        return grown.with_changes(
            decorator=call.with_changes(whitespace_before_args=line_break(step), args=args)
        )

    def _lines(self, decorator: cst.Decorator) -> list[str]:
        return self.module.code_for_node(decorator.with_changes(leading_lines=[])).splitlines()

    def _fits(self, decorator: cst.Decorator, indent: str) -> bool:
        longest = max(len(line.rstrip()) for line in self._lines(decorator))
        return _columns(indent) + longest <= self.width

    def _argument(self, argument: cst.Arg, room: int) -> cst.Arg:
        """An argument on a line of its own, its list or tuple broken where that is too long."""
        alone = argument.with_changes(comma=cst.Comma(), whitespace_after_arg=NOTHING)
        return self._shortened(alone, room)

    def _shortened(self, argument: cst.Arg, room: int) -> cst.Arg:
        """An argument with its list or tuple broken where it is one line that is too long."""
        value = argument.value
        if not isinstance(value, (cst.List, cst.Tuple)) or not value.elements:
            return argument
        alone = argument.with_changes(comma=cst.Comma(), whitespace_after_arg=NOTHING)
        code = self.module.code_for_node(alone)
        if len(code.splitlines()) > 1 or len(code) <= room:
            return argument
        return argument.with_changes(value=_exploded(value, self.module.default_indent))


def _spaces(call: cst.Call) -> Iterator[object]:
    """The white space inside a call's brackets, not that inside its arguments."""
    yield call.whitespace_before_args
    for arg in call.args:
        yield arg.whitespace_after_arg
        if isinstance(arg.comma, cst.Comma):
            yield arg.comma.whitespace_after


def _columns(indent: str) -> int:
    return len(indent.expandtabs(4))  # as ruff and black count a tab


def append_argument(call: cst.Call, argument: cst.Arg, step: str) -> cst.Call:
    """A call with one argument more, laid out as its last one is; `step` is a level's indent."""
    if not call.args:
        inside = call.whitespace_before_args
        if not isinstance(inside, cst.ParenthesizedWhitespace):
            return call.with_changes(args=[argument])
        ended = argument.with_changes(comma=cst.Comma(whitespace_after=bare(inside)))
        return call.with_changes(whitespace_before_args=deeper(inside, step), args=[ended])
    *others, last = call.args
    comma = last.comma
    spaces = Inside(
        call.whitespace_before_args,
        tuple(one.comma.whitespace_after for one in others if isinstance(one.comma, cst.Comma)),
        comma.whitespace_after if isinstance(comma, cst.Comma) else last.whitespace_after_arg,
        isinstance(comma, cst.Comma),
    )
    place = spaces.with_one_more(step)
    before = cst.Comma(whitespace_after=place.before)
    if isinstance(comma, cst.Comma):
        before = comma.with_changes(whitespace_after=place.before)
    else:
        last = last.with_changes(whitespace_after_arg=NOTHING)
    if place.comma:
        added = argument.with_changes(comma=cst.Comma(whitespace_after=place.closing))
    else:
        added = argument.with_changes(whitespace_after_arg=place.closing)
    return call.with_changes(args=[*others, last.with_changes(comma=before), added])


def append_element(
    sequence: cst.List | cst.Tuple, entry: cst.SimpleString, step: str
) -> cst.List | cst.Tuple:
    """A list or tuple with one element more, laid out and quoted as its last one is."""
    if not sequence.elements:
        inside = _opening(sequence)
        if not isinstance(inside, cst.ParenthesizedWhitespace):
            return sequence.with_changes(elements=[cst.Element(entry)])
        first = sequence.with_changes(elements=[cst.Element(entry, comma=cst.Comma())])
        return _bracketed(first, deeper(inside, step), bare(inside))
    *others, last = sequence.elements
    if isinstance(last.value, cst.SimpleString) and last.value.quote == "'":
        entry = cst.SimpleString(entry.value.replace('"', "'"))
    comma = last.comma
    spaces = Inside(
        _opening(sequence),
        tuple(one.comma.whitespace_after for one in others if isinstance(one.comma, cst.Comma)),
        _closing(sequence),
        isinstance(comma, cst.Comma),
    )
    place = spaces.with_one_more(step)
    # A tuple of one needs its comma, a longer one does not.
    needed = isinstance(sequence, cst.Tuple) and not others and not breaks(place.before)
    added = cst.Element(entry)
    if place.comma and not needed:
        added = added.with_changes(comma=cst.Comma())
    before = cst.Comma(whitespace_after=place.before)
    elements = [*others, last.with_changes(comma=before), added]
    grown = sequence.with_changes(elements=elements)
    return _bracketed(grown, _opening(sequence), place.closing)


def _opening(sequence: cst.List | cst.Tuple) -> cst.BaseParenthesizableWhitespace:
    if isinstance(sequence, cst.List):
        return sequence.lbracket.whitespace_after
    return sequence.lpar[0].whitespace_after if sequence.lpar else NOTHING


def _closing(sequence: cst.List | cst.Tuple) -> cst.BaseParenthesizableWhitespace:
    if isinstance(sequence, cst.List):
        return sequence.rbracket.whitespace_before
    return sequence.rpar[0].whitespace_before if sequence.rpar else NOTHING


def _exploded(sequence: cst.List | cst.Tuple, step: str) -> cst.List | cst.Tuple:
    """A list or tuple in a call's own line, with a line for each element."""
    inside = line_break(step * 2)
    *others, last = sequence.elements
    elements = [
        *(one.with_changes(comma=cst.Comma(whitespace_after=inside)) for one in others),
        last.with_changes(comma=cst.Comma()),
    ]
    return _bracketed(sequence.with_changes(elements=elements), inside, line_break(step))


def _bracketed(
    sequence: cst.List | cst.Tuple,
    opening: cst.BaseParenthesizableWhitespace,
    closing: cst.BaseParenthesizableWhitespace,
) -> cst.List | cst.Tuple:
    """The same elements with other white space inside the brackets."""
    if isinstance(sequence, cst.List):
        return sequence.with_changes(
            lbracket=cst.LeftSquareBracket(whitespace_after=opening),
            rbracket=cst.RightSquareBracket(whitespace_before=closing),
        )
    *outer, first = sequence.lpar
    last, *more = sequence.rpar
    return sequence.with_changes(
        lpar=[*outer, first.with_changes(whitespace_after=opening)],
        rpar=[last.with_changes(whitespace_before=closing), *more],
    )
