"""Bytes to a LibCST module and back, with bounds on what is tried.

LibCST's native parser has no bounds of its own: it needs memory quadratic in the length of a line
(10 GB for 100,000 characters, 1.9.0) and recurses without a limit, so a hostile file would end the
process. What is longer, larger or deeper than any source of a person is refused here instead.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections import Counter

import libcst as cst

MAX_BYTES = 1 << 20
MAX_LINE = 10_000
_STACK_BYTES = 512 << 20


_CONFLICT = re.compile(rb"^<{7}(?:\s.*)?$[\s\S]*?^>{7}(?:\s|$)", re.MULTILINE)
_MARKER = re.compile(rb"(?:<{7}|\|{7}|={7}|>{7})(?:\s|$)")


class UnparsableSource(Exception):
    """The bytes are no module that can be rewritten; `line` is None where no line is to blame."""

    def __init__(self, why: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(why)


class MergeConflict(UnparsableSource):
    """The bytes have the marks of a merge conflict, which starts on `line`."""

    line: int

    def __init__(self, line: int) -> None:
        super().__init__(f"unresolved merge conflict on line {line}", line)


def parse(data: bytes, *, checked: bool = False) -> cst.Module:
    """Parse a module; `checked` says that `syntax_tree` has taken the bytes already."""
    if not checked:
        syntax_tree(data)
    return _parse_on_a_deep_stack(data)


def syntax_tree(data: bytes) -> ast.Module | None:
    """The module as the running Python reads it, None where it does not accept the bytes.

    Raises UnparsableSource where it is too large or nested too deeply.
    """
    _refuse_oversize(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (RecursionError, MemoryError):
        raise UnparsableSource("it is nested too deeply") from None
    except (SyntaxError, ValueError) as error:
        if "too many" in str(error):
            raise UnparsableSource("it is nested too deeply") from None
        # Other syntax may be newer than the running Python; LibCST has the last word on it.
        return None


def survives_parsing(data: bytes) -> bool:
    """Whether parsing and printing gives the bytes back: what is not edited stays as it is."""
    try:
        return parse(data).bytes == data
    except (UnparsableSource, RecursionError):
        return False


def loses_white_space(before: bytes, after: bytes) -> bool:
    """Whether a line of `before` is gone, or is in `after` with other white space.

    LibCST's printing drops a form feed before code, a last carriage return, and blank lines of
    spaces at the end. Far cheaper than `survives_parsing`, and as good on what is seen in trees.
    """
    old, new = (Counter(data.splitlines(keepends=True)) for data in (before, after))
    lost = list((old - new).keys())
    if lost and not before.endswith((b"\n", b"\r")):
        last = before.splitlines()[-1]
        lost = [line for line in lost if line != last]  # it may have got its line end
    gained = {b"".join(line.split()) for line in new - old}
    return any(b"".join(line.split()) in {b"", *gained} for line in lost)


def compiles(data: bytes) -> bool:
    """Whether the running Python accepts the bytes as a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _refuse_oversize(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise UnparsableSource(f"it is larger than {MAX_BYTES >> 10} KiB")
    if b"\0" in data:
        raise UnparsableSource("it holds a NUL byte")  # LibCST takes it, Python never does
    longest = max(map(len, data.splitlines()), default=0)
    if longest > MAX_LINE:
        raise UnparsableSource(f"a line is longer than {MAX_LINE} bytes")
    if b"\r" in data.replace(b"\r\n", b""):
        # LibCST loses the last one, and no tool of today writes them.
        raise UnparsableSource("a line ends in a lone carriage return")


def _parse_on_a_deep_stack(data: bytes) -> cst.Module:
    result: list[cst.Module | BaseException] = []
    # Not join(): an interrupt there makes Python (3.11) take the thread for ended, and exiting
    # under the native parser aborts the process.
    ended = threading.Event()

    def run() -> None:
        try:
            result.append(cst.parse_module(data))
        except BaseException as error:  # handed to the caller's thread
            result.append(error)
        finally:
            ended.set()

    previous = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(previous)
    ended.wait()
    outcome = result[0]
    if isinstance(outcome, cst.Module):
        return outcome
    if isinstance(outcome, cst.ParserSyntaxError):
        conflict = _conflict_line(data, outcome.raw_line)
        if conflict is not None:
            raise MergeConflict(conflict)
        raise UnparsableSource(f"syntax error on line {outcome.raw_line}", outcome.raw_line)
    if isinstance(outcome, (UnicodeDecodeError, LookupError)):
        raise UnparsableSource("its bytes are not text in the encoding it declares")
    if isinstance(outcome, RecursionError):
        raise UnparsableSource("it is nested too deeply")
    if isinstance(outcome, Exception):
        raise UnparsableSource(str(outcome).splitlines()[0])
    raise outcome


def _conflict_line(data: bytes, error_line: int) -> int | None:
    """The line of the merge conflict that a syntax error comes from; None where it is no conflict.

    Of a conflict that is half resolved one marker may be left: on the error's line, or on the last
    one before it that is not blank, since LibCST names the line of the next token.
    """
    pair = _CONFLICT.search(data)
    if pair is not None:
        return data.count(b"\n", 0, pair.start()) + 1
    lines = data.splitlines()[:error_line]
    near = [number for number, line in enumerate(lines, 1) if line.strip()][-2:]
    return next((number for number in near if _MARKER.match(lines[number - 1])), None)
