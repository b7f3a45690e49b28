"""Small changes that a fork could make to a file, each as text in and text out.

A change gets `pick`, which chooses one of a sequence, so that a property test can search through
all of them and shrink what it finds. A change that does not fit returns the text as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.forks.trees import BLOCK_TABLE, FORKS, WARMUP, WORKER, read_toml

Pick = Callable[[Sequence[Any]], Any]
Change = Callable[[str, Pick], str]

METHOD = "compile_or_warm_up_model"

MIXES = read_toml(FORKS / "mixes.toml")


def _nodes(text: str) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(text))


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _method(text: str, name: str) -> ast.FunctionDef | None:
    """The last function of that name: the last class's, as the base has it."""
    found = [n for n in _nodes(text) if isinstance(n, ast.FunctionDef) and n.name == name]
    return max(found, key=lambda node: node.lineno, default=None)


def _blocks(function: ast.AST) -> list[list[ast.stmt]]:
    blocks = []
    for node in ast.walk(function):
        for part in ("body", "orelse", "finalbody"):
            body = getattr(node, part, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                blocks.append(body)
    # An elif is an else whose only statement starts on the `elif` line: no place of its own.
    return blocks


def _indented(code: str, by: int) -> str:
    return "".join(" " * by + line for line in (code + "\n").splitlines(keepends=True))


def _put(text: str, line: int, code: str) -> str:
    """The text with `code` before the 1-based line, or the text where that does not parse."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    made = "".join([*lines[: line - 1], code, *lines[line - 1 :]])
    return made if _parses(made) else text


def statement_in(name: str, statements: Sequence[str]) -> Change:
    def change(text: str, pick: Pick) -> str:
        function = _method(text, name)
        if function is None:
            return text
        block = pick(_blocks(function))
        place = pick(range(len(block) + 1))
        code = _indented(pick(statements), block[0].col_offset)
        at = block[place].lineno if place < len(block) else (block[-1].end_lineno or 0) + 1
        return _put(text, at, code)

    return change


def wrap(text: str, pick: Pick) -> str:
    """Puts a run of statements of the worker's method into something."""
    function = _method(text, METHOD)
    if function is None:
        return text
    block = pick(_blocks(function))
    first = pick(range(len(block)))
    last = pick(range(first, len(block)))
    opening, _, closing = pick(MIXES["wrappers"]).partition("|")
    lines = text.splitlines(keepends=True)
    start, end = block[first].lineno - 1, block[last].end_lineno or 0
    column = block[first].col_offset
    deeper = 4 * (opening.count("\n") + 1)
    inner = "".join(" " * deeper + line if line.strip() else line for line in lines[start:end])
    close = _indented(closing, column + (4 if closing == "break" else 0)) if closing else ""
    made = "".join([*lines[:start], _indented(opening, column), inner, close, *lines[end:]])
    return made if _parses(made) else text


def comment(text: str, pick: Pick) -> str:
    lines = text.splitlines(keepends=True)
    words = pick(("# noqa", "# All warmup is done", "#: activate_jit_monitor()", "# \u2192 \u00e9"))
    made = _put(text, pick(range(1, len(lines) + 1)), " " * pick((0, 4, 8, 12)) + words + "\n")
    return made if ast.dump(ast.parse(made)) == ast.dump(ast.parse(text)) else text


def trailing_comment(text: str, pick: Pick) -> str:
    lines = text.splitlines(keepends=True)
    place = pick(range(len(lines)))
    lines[place] = lines[place].rstrip("\n") + pick(("  # noqa: E501", "  # fork", " ")) + "\n"
    made = "".join(lines)
    same = _parses(made) and ast.dump(ast.parse(made)) == ast.dump(ast.parse(text))
    return made if same else text


def blank_lines(text: str, pick: Pick) -> str:
    lines = text.splitlines(keepends=True)
    return _put(text, pick(range(1, len(lines) + 1)), pick(("\n", "\n\n\n", "    \n", "\f\n")))


def remove_statement(text: str, pick: Pick) -> str:
    function = _method(text, pick((METHOD, "compute_slot_mapping")))
    if function is None:
        return text
    block = pick(_blocks(function))
    gone = pick(block)
    lines = text.splitlines(keepends=True)
    keep = [_indented("pass", gone.col_offset)] if len(block) == 1 else []
    made = "".join([*lines[: gone.lineno - 1], *keep, *lines[gone.end_lineno :]])
    return made if _parses(made) else text


def replaced(name: str) -> Change:
    """One of the replacements of that name, wherever the old text stands."""

    def change(text: str, pick: Pick) -> str:
        place = pick(MIXES["replace"][name])
        made = text.replace(place["old"], pick(place["new"]))
        return made if _parses(made) else text

    return change


def renamed(name: str) -> Change:
    def change(text: str, pick: Pick) -> str:
        old, new = pick(sorted(MIXES["rename"][name].items()))
        return re.sub(rf"\b{old}\b", new, text)

    return change


def reorder_methods(text: str, pick: Pick) -> str:
    owners = [n for n in _nodes(text) if isinstance(n, ast.ClassDef) and len(n.body) > 1]
    if not owners:
        return text
    owner = pick(owners)
    lines = text.splitlines(keepends=True)
    moved = pick([n for n in owner.body if isinstance(n, ast.FunctionDef)] or owner.body[:1])
    start = min([moved.lineno, *(d.lineno for d in getattr(moved, "decorator_list", ()))]) - 1
    body = lines[start : moved.end_lineno]
    rest = lines[:start] + lines[moved.end_lineno :]
    target = pick([n for n in owner.body if n is not moved] or [moved])
    at = target.end_lineno or 0
    at = at - len(body) if target.lineno > moved.lineno else at
    made = "".join([*rest[:at], "\n", *body, *rest[at:]])
    return made if _parses(made) else text


def decorate(text: str, pick: Pick) -> str:
    """Another decorator for the kernel, and what its names need."""
    lines = text.splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if line.startswith("@triton.jit")]
    if not places:
        return text
    place = pick(places)
    decorator = pick(MIXES["decorators"])
    lines[place] = decorator + "\n"
    made = "".join(lines)
    needs = {
        "NAMES": 'NAMES = ["max_num_tokens"]\n',
        "OPTIONS": 'OPTIONS = {"debug": True}\n',
        "functools.": "import functools\n",
        "fork.": "from vllm import fork\n",
    }
    for word, line in needs.items():
        if word in decorator:
            made = made.replace("\nPAD_SLOT_ID = -1\n", f"\nPAD_SLOT_ID = -1\n{line}", 1)
    return made if _parses(made) else text


# What is listed twice is drawn twice as often.
CHANGES: dict[str, tuple[Change, ...]] = {
    WORKER: (
        *(2 * (statement_in(METHOD, MIXES["statements"]["worker"]), wrap, replaced("branch"))),
        replaced("monitor"),
        replaced("imports"),
        replaced("worker_shape"),
        renamed("worker"),
        reorder_methods,
        remove_statement,
        comment,
        trailing_comment,
        blank_lines,
    ),
    BLOCK_TABLE: (
        *(2 * (decorate, replaced("table_shape"))),
        statement_in("compute_slot_mapping", MIXES["statements"]["table"]),
        renamed("table"),
        reorder_methods,
        remove_statement,
        comment,
        trailing_comment,
        blank_lines,
    ),
    WARMUP: (*(2 * (replaced("warmup_shape"),)), comment, trailing_comment, blank_lines),
}


def _reindented(text: str, unit: str) -> str:
    def narrower(match: re.Match[str]) -> str:
        return unit * (len(match[1]) // 4) + " " * (len(match[1]) % 4)

    return re.sub(r"^( +)", narrower, text, flags=re.MULTILINE)


BYTES: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "mixed line ends": lambda text: text.replace("\n", "\r\n", 40).encode(),
    "no final newline": lambda text: text.rstrip("\n").encode(),
    "trailing spaces": lambda text: text.replace(",\n", ", \n").encode(),
    "two-space indents": lambda text: _reindented(text, "  ").encode(),
    "tabs": lambda text: _reindented(text, "\t").encode(),
    "BOM": lambda text: text.encode("utf-8-sig"),
    "latin-1": lambda text: ("# coding: latin-1\n" + text).encode("latin-1", "replace"),
}
