"""Rule: the bytes are those of before, with whole lines put in and named lines replaced."""

from __future__ import annotations

import ast
import codecs
import difflib

from tests.forks.oracle.kernels import LIST, Kernel
from tests.forks.oracle.modules import Module, Package

WORKER = "v1/worker/gpu_worker.py"
WARMUP = "v1/worker/gpu/warmup.py"


def faults(
    path: str, before: bytes, after: bytes, old: Package, launched: tuple[Kernel, ...]
) -> list[str]:
    if before == after:
        return []
    found = []
    if before.startswith(codecs.BOM_UTF8) != after.startswith(codecs.BOM_UTF8):
        found.append("the BOM came or went")
    if bool(before) and before.endswith((b"\n", b"\r")) != after.endswith((b"\n", b"\r")):
        found.append("the last line's end came or went")
    was, now = _lines(before), _lines(after)
    replaceable = _replaceable(path, old.modules[path], launched)
    inserted: list[bytes] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(
        None, was, now, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        gone = [n for n in range(i1 + 1, i2 + 1) if n not in replaceable]
        if gone == [len(was)] and now[j1:j2][:1] and _ended(now[j1], was[-1]):
            gone = []
        found += [f"{path}:{n}: a line that is not ours went or changed" for n in gone]
        inserted += now[j1:j2]
    ends = {_end(line) for line in was if _end(line)}
    if len(ends) == 1:
        strange = [line for line in inserted if _end(line) and _end(line) not in ends]
        found += [f"{path}: {line!r} has another line end" for line in strange]
    return found


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _end(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :]


def _ended(line: bytes, last: bytes) -> bool:
    """Whether the file's last line, which had no end, has only been given one."""
    return line.rstrip(b"\r\n") == last


def _replaceable(path: str, module: Module, launched: tuple[Kernel, ...]) -> set[int]:
    """The lines that a rewrite may replace: imports, decorators, constants in decorators."""
    nodes: list[ast.AST] = []
    if path == WORKER:
        nodes = [
            n
            for n in ast.walk(module.tree)
            if isinstance(n, ast.ImportFrom) and module.absolute(n).endswith("gpu.warmup")
        ]
    elif path == WARMUP:
        nodes = [n for n in ast.walk(module.tree) if isinstance(n, ast.ImportFrom)]
    else:
        names = {kernel.name for kernel in launched if kernel.path == path}
        # Of two definitions the last counts, and both may be changed.
        kernels = [n for n in module.outside if getattr(n, "name", None) in names]
        nodes = [d for kernel in kernels for d in getattr(kernel, "decorator_list", ())]
        nodes += [
            value
            for decorator in nodes
            for name in ast.walk(decorator)
            if LIST in ast.unparse(decorator) and isinstance(name, ast.Name)
            for value in module.constants.get(name.id, [])
        ]
    return {
        line
        for node in nodes
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]
    }
