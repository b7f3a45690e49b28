"""Takes known statements out of source, whatever indents and line ends the source has.

They are written with four-space indents and LF; `{name}` in them is a field for what varies.
"""

from __future__ import annotations

import re
from string import Formatter

STEP = " " * 4


def regex(text: str, **parts: str) -> str:
    """A regular expression for a text whose fields are `parts`, regular expressions themselves."""
    return "".join(
        re.escape(literal) + (f"(?:{parts[name]})" if name else "")
        for literal, name, _, _ in Formatter().parse(text)
    )


def statements(text: str, blank_lines: int, **parts: str) -> re.Pattern[str]:
    """What finds the text at any depth, with so many empty lines above and nothing added below."""
    body = re.sub(r"\\\n(?!\\\n|$)", "\\\\\n(?P=at)", regex(text, **parts))
    more = r"\n*(?P=at)(?: |el(?:if|se)\b)"
    return re.compile(rf"^\n{{{blank_lines}}}(?P<at> *){body}(?!{more})", re.MULTILINE)


def without(code: str, indent: str, known: re.Pattern[str]) -> str:
    """The source without what `known` finds; `indent` is the source's own step."""
    lines = code.split("\n")
    plain = "".join(f"{_plain(line, indent)}\n" for line in lines)
    for match in reversed([*known.finditer(plain)]):
        first, last = (plain.count("\n", 0, place) for place in match.span())
        del lines[first:last]
    rest = "\n".join(lines)
    return rest if code.endswith("\n") else rest.removesuffix("\r")


def _plain(line: str, indent: str) -> str:
    """A line with four-space indents and LF."""
    depth = 0
    while line.startswith(indent, depth * len(indent)):
        depth += 1
    return STEP * depth + line[depth * len(indent) :].removesuffix("\r")
