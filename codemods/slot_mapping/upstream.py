"""Is the fix, or another form of it, already in the tree?

Two things mean that nothing is missing: upstream's kernel class of 0.29, whose compile keys
`BlockTable.__init__` registers for warm-up, and our own function called before the monitor (that is
the `worker` edit's to see). Every other warm-up of the kernel is only named: a second call costs one
cached launch.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from codemods.checkout import Checkout, UnreadableFile
from codemods.slot_mapping.launches import METHOD
from codemods.slot_mapping.warmup import FUNCTION

_CALL = f".{METHOD}(".encode()
_FOLDERS = ("v1/worker", "model_executor/warmup")
_RUNNER = "v1/worker/gpu_model_runner.py"


def other_warmups(checkout: Checkout) -> list[str]:
    """Functions, as `file:name`, that call the method beside the tables and the runner's own step."""
    found = []
    for folder in _FOLDERS:
        for relative in checkout.python_files(folder):
            try:
                data = checkout.read(relative) or b""
            except UnreadableFile:
                continue
            # The runner calls it once for each step; a second call there is a warm-up.
            if data.count(_CALL) <= (1 if relative == _RUNNER else 0):
                continue
            found += [f"{checkout.name(relative)}:{name}" for name in _callers(data)]
    return found


def _callers(data: bytes) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if node.name in (METHOD, FUNCTION, "_prepare_inputs"):
            continue
        if any(
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == METHOD
            for call in ast.walk(node)
        ):
            yield node.name
