"""Is the fix, or another form of it, already in the tree?

Two things mean that nothing is missing: upstream's kernel class of 0.29, whose compile keys
`BlockTable.__init__` registers for warm-up (launches.py sees it), and our own function called
before the monitor (the `worker` edit sees it). Every other warm-up of the kernel is only named:
a second call costs one cached launch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.checkout import Checkout, UnreadableFile
from codemods.slot_mapping.launches import METHOD
from codemods.slot_mapping.warmup import FUNCTION

_FOLDERS = ("v1/worker", "model_executor/warmup")
_CALL = re.compile(rb"^[^#\n]*\." + METHOD.encode() + rb"\(", re.MULTILINE)
_DEFINITION = re.compile(rb"^[ \t]*(?:async )?def (\w+)", re.MULTILINE)
# The tables' own methods, ours, and the runner's step.
_NO_WARMUPS = frozenset({METHOD, FUNCTION, "_prepare_inputs"})


def other_warmups(checkout: Checkout) -> list[str]:
    """Functions, as `file:name`, that call the method beside the tables and the runner's step.

    Only for people to read: the calls are found as text, since the runner takes longer to parse
    than everything else together.
    """
    found = []
    for folder in _FOLDERS:
        for relative in checkout.python_files(folder):
            try:
                data = checkout.read(relative) or b""
            except UnreadableFile:
                continue
            found += [f"{checkout.name(relative)}:{name}" for name in _callers(data)]
    return list(dict.fromkeys(found))


def _callers(data: bytes) -> Iterator[str]:
    if METHOD.encode() not in data:
        return
    for call in _CALL.finditer(data):
        name = _definition_above(data, call.start()) or "the module itself"
        if name not in _NO_WARMUPS:
            yield name


def _definition_above(data: bytes, position: int) -> str | None:
    while (position := data.rfind(b"def ", 0, position)) >= 0:
        start = data.rfind(b"\n", 0, position) + 1
        found = _DEFINITION.match(data, start)
        if found:
            return found.group(1).decode()
    return None
