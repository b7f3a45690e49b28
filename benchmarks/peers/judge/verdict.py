"""What is wrong with a tree that was rewritten: a few short sentences, none where it is right."""

from __future__ import annotations

import ast
import copy
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .record import Record

WARMUP_FUNCTION = "warmup_v1_slot_mapping_kernel"
WARM_UP_METHODS = ("compile_or_warm_up_model", "_compile_or_warm_up_model")
V2_FLAG = b"use_v2_model_runner"
WORKER = "v1/worker/gpu_worker.py"

Files = Mapping[str, bytes]
Engine = Mapping[str, Any]  # what tests/forks/engine.py says of a tree


def faults(before: Files, after: Files, was: Record, now: Record) -> Iterator[str]:
    """What the two runs and the files show; `before` and `after` hold a tree's Python files."""
    if not all(_compiles(text) for text in after.values()):
        yield "a file is no Python any more"
        return
    if now.error:
        yield f"the engine does not start: {now.error.partition(':')[0]}"
        return
    if now.unserved:
        yield f"a request fails: {now.unserved.partition(':')[0]}"
        return
    if now.late:
        yield "requests compile a kernel, or the monitor sees it compile"
    if knows_v2(before) and now.v2_launches != was.v2_launches:
        yield "the V2 runner's start is another"
    if new := set(now.tables.items()) - set(was.tables.items()):
        yield f"warming up changes block tables {min(what for _, what in new)}"
    if _others(now.calls) != _others(was.calls):
        yield "the worker calls other things than before"
    if any(_lost(text, after.get(name, b"")) for name, text in before.items()):
        yield "a function has changed that is no part of the fix"


def engine_faults(files: Files, was: Engine, now: Engine) -> Iterator[str]:
    """What Triton's interpreter shows, in which the kernels really run."""
    if now["error"]:
        yield f"the engine does not start: {now['error'].partition(':')[0]}"
        return
    v2 = [start for start in was["launches"] if "v2" in start.split()]
    if knows_v2(files) and any(now["launches"][start] != was["launches"][start] for start in v2):
        yield "the V2 runner's start is another"
    if now["left"].items() - was["left"].items():
        yield "warming up changes block tables of no request"
    if now["live"] != was["live"]:
        yield "warming up changes block tables of a live request"
    if now["slots"] != was["slots"]:
        yield "requests get other slots"


def knows_v2(files: Files) -> bool:
    """Whether the worker knows the V2 runner; where it does not, every start is V1's."""
    return any(V2_FLAG in text for name, text in files.items() if name.endswith(WORKER))


def stops_it(was: Record, now: Record) -> bool:
    """Whether a tree started before and does not any more."""
    return bool(now.error) and not was.error


def _compiles(text: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "file", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def _others(calls: dict[str, list[str]]) -> dict[str, list[str]]:
    """The calls without those of the fix itself."""
    return {
        start: [call for call in made if not call.endswith(WARMUP_FUNCTION)]
        for start, made in calls.items()
    }


def _lost(before: bytes, after: bytes) -> bool:
    """Whether a function's body, arguments or name is no longer what it was."""
    return before != after and bool(_functions(before) - _functions(after))


@lru_cache(maxsize=64)
def _functions(text: bytes) -> Counter[str]:
    """Every function by its source; the method that the fix edits and decorators left out."""
    found: Counter[str] = Counter()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name not in WARM_UP_METHODS:
            bare = copy.copy(node)
            bare.decorator_list = []
            found[ast.dump(bare)] += 1
    return found
