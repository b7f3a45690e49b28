"""Adds to a call's arguments and to a list, laid out as what is there, and breaks long decorators.

Lines are broken as ruff and black break them, so that what was formatted stays so.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from codemods.transforms.layout import (
    NOTHING,
    SPACE,
    bare,
    breaks,
    deeper,
    line_break,
    split,
)


@dataclass(frozen=True)
class Fit:
    """Breaks decorators of a module that are longer than `width` characters."""

    module: cst.Module
    width: int

    def decorator(self, decorator: cst.Decorator, indent: str) -> cst.Decorator:
        """The decorator of a call, broken where it is a line that is too long behind `indent`."""
        call = decorator.decorator
        code = self.module.code_for_node(decorator.with_changes(leading_lines=[]))
        if len(code.splitlines()) != 1 or not isinstance(call, cst.Call):
            return decorator
        if _columns(indent) + len(code.rstrip()) <= self.width:
            return decorator
        step = self.module.default_indent
        room = self.width - _columns(indent + step)
        *others, last = call.args
        if sum(len(self.module.code_for_node(arg)) for arg in call.args) <= room:
            args = [*others, last.with_changes(whitespace_after_arg=line_break(""))]
        else:
            between = cst.Comma(whitespace_after=line_break(step))
            closing = cst.Comma(whitespace_after=line_break(""))
            args = [self._argument(arg, room).with_changes(comma=between) for arg in others]
            args.append(self._argument(last, room).with_changes(comma=closing))
        return decorator.with_changes(
            decorator=call.with_changes(whitespace_before_args=line_break(step), args=args)
        )

    def _argument(self, argument: cst.Arg, room: int) -> cst.Arg:
        """An argument on a line of its own, its list or tuple broken where that is too long."""
        value = argument.value
        alone = argument.with_changes(comma=cst.Comma(), whitespace_after_arg=NOTHING)
        if len(self.module.code_for_node(alone)) <= room:
            return alone
        if isinstance(value, (cst.List, cst.Tuple)) and value.elements:
            return alone.with_changes(value=_exploded(value, self.module.default_indent))
        return alone


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
    if isinstance(last.comma, cst.Comma) and breaks(call.whitespace_before_args):
        # One argument a line with a trailing comma: ours gets a line and a comma too.
        between, closing = split(last.comma.whitespace_after, call.whitespace_before_args)
        return call.with_changes(
            args=[
                *others,
                last.with_changes(comma=last.comma.with_changes(whitespace_after=between)),
                argument.with_changes(comma=cst.Comma(whitespace_after=closing)),
            ]
        )
    return call.with_changes(
        args=[
            *others,
            last.with_changes(
                comma=cst.Comma(whitespace_after=SPACE),
                whitespace_after_arg=NOTHING,
            ),
            argument.with_changes(whitespace_after_arg=last.whitespace_after_arg),
        ]
    )


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
    if isinstance(comma, cst.Comma) and breaks(_opening(sequence)):
        between, closing = split(_closing(sequence), _opening(sequence))
        elements = [
            *others,
            last.with_changes(comma=comma.with_changes(whitespace_after=between)),
            cst.Element(entry, comma=cst.Comma()),
        ]
        grown = sequence.with_changes(elements=elements)
        return _bracketed(grown, _opening(sequence), closing)
    # A tuple of one needs its comma, a longer one does not.
    lone = isinstance(sequence, cst.Tuple) and not others
    kept = comma if isinstance(comma, cst.Comma) and not lone else cst.MaybeSentinel.DEFAULT
    spaced = cst.Comma(whitespace_after=SPACE)
    return sequence.with_changes(
        elements=[*others, last.with_changes(comma=spaced), cst.Element(entry, comma=kept)]
    )


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
