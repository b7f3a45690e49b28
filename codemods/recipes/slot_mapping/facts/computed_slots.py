"""Whether requests get their own slots: `compute_slot_mapping` on small numbers, without a run.

The method is followed and its kernels are evaluated, for two requests with padding behind them and
two KV cache groups, the second as on the last of two context-parallel ranks. What cannot be read to
the end is not judged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeGuard

from codemods.engine.sources import SourceFile
from codemods.recipes.slot_mapping.facts import kernel_body
from codemods.recipes.slot_mapping.facts.kernel_body import Array, Budget, Unreadable, unreadable
from codemods.recipes.slot_mapping.facts.names import BLOCK_TABLE, METHOD
from codemods.recipes.slot_mapping.facts.simulated_tables import Classes, SimulatedTables
from codemods.recipes.warm_up.evaluate import Follower, Raised, TooComplex, Way, for_each_setting
from codemods.recipes.warm_up.values import (
    Arguments,
    DottedName,
    Function,
    Instance,
    Items,
    Known,
    Setting,
    Value,
    Varying,
)

PAD = -1  # as in every release; a tree with another is not judged
_PADDING_FILES = (BLOCK_TABLE, "v1/attention/backends/utils.py")
_OTHER_PADDING = rb"(?m)^PAD_SLOT_ID\b[^=\n]*=(?!\s*-1\s*(?:#|$))"
_TRITONS = re.compile(r"from [\w.]*\btriton(_utils)? import\b|import triton\.language as tl$")
# Python's functions that store nothing in the tables that they are given.
_LEAVE_TABLES = frozenset(
    {"enumerate", "getattr", "hasattr", "isinstance", "len", "list", "reversed", "tuple", "zip"}
)
# For each group; a group's rank is the last.
BLOCK_SIZES = (4, 2)
RANKS = (1, 2)
STARTS = (0, 3, 5)
POSITIONS = (3, 4, 5, 0, 1)
MOST_TOKENS = 8
MOST_REQUESTS = 4
# A statement of the method takes as long.
_VALUES_OF_A_STEP = 50
_MEMORY = 64


def wrong_slots(classes: Classes) -> str | None:
    """What the method gets wrong, as a sentence's part; None where nothing is shown to be wrong."""
    try:
        budget = Budget()
        # As a rule the lanes that the tokens need are enough.
        found = _wrong(classes, MOST_TOKENS, budget)
        found = found and _wrong(classes, kernel_body.MOST_LANES, budget)
        return None if found and _has_other_padding(classes) else found
    except kernel_body.NotCompiled as error:
        return str(error)
    except (Unreadable, TooComplex, Raised, RecursionError):
        return None


def _has_other_padding(classes: Classes) -> bool:
    files = (classes.sources.read(name) for name in _PADDING_FILES)
    return any(file is not None and re.search(_OTHER_PADDING, file.data) for file in files)


def _wrong(classes: Classes, lanes: int, budget: Budget) -> str | None:
    """A wrong slot; None where one way through the method, which engines may take, has none."""
    wrong = []
    for engine in for_each_setting(partial(_followed, classes, lanes, budget)):
        if engine.programs:
            wrong.append(engine.wrong())
            if wrong[-1] is None:
                return None
    return wrong[0] if wrong else None


def _followed(
    classes: Classes, lanes: int, budget: Budget, settings: Mapping[str, bool]
) -> _Engine:
    """An engine that has called the method for a batch of all the requests."""
    engine, way = _Engine(classes, lanes, budget), Way(settings)
    method = engine.groups.method(METHOD) or unreadable()
    batch: dict[str, Value] = {
        "num_reqs": Known(len(STARTS) - 1),
        "query_start_loc": Known(_array(STARTS)),
        "positions": Known(_array(POSITIONS)),
    }
    follower = Follower(engine, way, exact=True)
    try:
        follower.call(method, ((), batch))
    finally:
        budget.spend(follower.steps * _VALUES_OF_A_STEP)
    return unreadable() if way.taken else engine


def slots_of(group: int, ranks: int) -> list[int]:
    """The slots of a group on the last rank, as the reference of the `result` proof has them."""
    size, blocks = BLOCK_SIZES[group], _blocks(group)
    found = [PAD] * MOST_TOKENS
    for row, (start, end) in enumerate(pairwise(STARTS)):
        for token in range(start, end):
            block, offset = divmod(POSITIONS[token], size * ranks)
            if offset % ranks == ranks - 1:
                found[token] = blocks.values[row * blocks.shape[1] + block] * size + offset // ranks
    return found


def _array(values: tuple[int, ...]) -> Array:
    return Array(dict(enumerate(values)), (len(values),))


def _blocks(group: int) -> Array:
    """A block table for the most tokens: no block is there twice, nor in the memory behind it."""
    shape = (MOST_REQUESTS, MOST_TOKENS // BLOCK_SIZES[group])
    return Array({place: 50 + 100 * group + place for place in range(_MEMORY)}, shape)


def _is_array(value: Value) -> TypeGuard[Known]:
    return isinstance(value, Known) and isinstance(value.value, Array)


def _reaches(value: Value) -> bool:
    """Whether what gets the value can store slots."""
    if isinstance(value, Items):
        return any(map(_reaches, value.items))
    return isinstance(value, Instance) or _is_array(value)


def _is_followed(base: Value, name: str) -> bool:
    """Whether a call of `base.name` is followed, so that no store of it is missed."""
    if isinstance(base, Instance):
        own = base.attributes.get(name)
        return (own is None and base.method(name) is not None) or isinstance(own, Function)
    return hasattr(ast, name) or not isinstance(base, (Items, Setting, Varying))


def _has_tritons_language(file: SourceFile) -> bool:
    """Whether `tl` is Triton's in the file, and no other module."""
    found = [
        ast.unparse(node)
        for node in (_statements(file.tree) if file.tree else ())
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and any("tl" in (one.asname, one.name) for one in node.names)
    ]
    return bool(found) and all(map(_TRITONS.match, found))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a module and all inside them, with what holds them; no expressions."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            stack += inner if isinstance(inner, list) else ()


@dataclass(eq=False)
class _Engine:
    """The tables that the followed method finds, and what was launched."""

    classes: Classes
    lanes: int
    budget: Budget
    programs: int = 0
    slots: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = SimulatedTables(self.classes)
        self.groups, _ = self.classes.fresh()
        tables = tuple(map(self._table, range(len(BLOCK_SIZES))))
        self.groups.attributes["block_tables"] = Items(tables)

    def _table(self, group: int) -> Instance:
        """Attributes are known by upstream's names; where forks mean another, both are equal."""
        _, table = self.classes.fresh()
        self.slots.append(Array({}, (MOST_TOKENS,)))
        sizes = dict.fromkeys(("block_size", "kv_cache_block_size"), BLOCK_SIZES[group])
        ranks = {"dcp_world_size": RANKS[group], "dcp_rank": RANKS[group] - 1, "pcp_rank": 0}
        ones = ("pcp_world_size", "cp_kv_cache_interleave_size", "blocks_per_kv_block")
        limits = {"max_num_reqs": MOST_REQUESTS, "max_num_batched_tokens": MOST_TOKENS}
        arrays = {"block_table": _blocks(group), "slot_mapping": self.slots[-1]}
        known = {**sizes, **ranks, **dict.fromkeys(ones, 1), **limits, **arrays}
        table.attributes.update((name, Known(value)) for name, value in known.items())
        return table

    def wrong(self) -> str | None:
        """A wrong slot; a tree that knows no ranks is held to those of a single one."""
        for group, ranks in enumerate(RANKS):
            found = [self._wrong_of(group, 1), self._wrong_of(group, ranks)]
            if all(found):
                return found[-1]
        return None

    def _wrong_of(self, group: int, ranks: int) -> str | None:
        pads = self.programs == len(STARTS)  # there is a program beside the requests'
        for place, expected in enumerate(slots_of(group, ranks)):
            found = self.slots[group].values.get(place)
            may_be_left = expected == PAD and not (pads and place >= len(POSITIONS))
            if found != expected and not (found is None and may_be_left):
                return (
                    f"expected {METHOD} to put {expected} in place {place} of the slot mapping of "
                    f"KV cache group {group}, found {'nothing' if found is None else found} "
                    f"({len(STARTS) - 1} requests, {len(POSITIONS)} tokens, block size "
                    f"{BLOCK_SIZES[group]}, context-parallel rank {ranks - 1} of {ranks})"
                )
        return None

    def attribute(self, base: Value, name: str) -> Value | None:
        if isinstance(base, DottedName):
            return Known(PAD) if "PAD_SLOT_ID" in (name, base.text) else None
        if not _is_array(base):
            return None
        if name == "shape":
            return Items(tuple(map(Known, base.value.shape)))
        return base if name == "gpu" else unreadable()

    def called(self, base: Value, name: str, given: Arguments) -> Value | None:
        if _is_array(base):
            is_stride = (name, given) == ("stride", ((Known(0),), {})) and base.value.shape[1:]
            return Known(base.value.shape[1]) if is_stride else unreadable()
        if not isinstance(base, DottedName):
            return None if _is_followed(base, name) else unreadable()
        path = DottedName(base.file, f"{base.text}.{name}" if name else base.text, base.imported)
        match path.text, given[0]:
            case "triton.next_power_of_2", (Known(int(number)),):
                return Known(1 << (number - 1).bit_length())
        passed = (*given[0], *given[1].values())
        if path.text in _LEAVE_TABLES and not any(map(_is_array, passed)):
            return None
        return unreadable() if any(map(_reaches, passed)) and not self.function(path) else None

    def function(self, path: DottedName) -> Function | None:
        return self.names.function(path)

    def stored(self, base: Value, name: str, value: Value) -> None:
        if _is_array(base):
            raise Unreadable

    def launched(
        self, kernel: Value, grid: Value, call: ast.Call, given: Arguments, way: Way
    ) -> None:
        node = self._kernel(kernel)
        spread = [one for one in call.args if isinstance(one, ast.Starred)]
        programs = grid.items[0] if isinstance(grid, Items) and len(grid.items) == 1 else None
        if spread or not isinstance(programs, Known) or not isinstance(programs.value, int):
            raise Unreadable
        names = [one.arg for one in node.args.args]
        passed = {**dict(zip(names, given[0], strict=False)), **given[1]}
        # What is true, or false, may stand for a value that is not known.
        known = {
            name: one.value
            for name, one in passed.items()
            if isinstance(one, Known) and not isinstance(one.value, bool)
        }
        kernel_body.evaluate(node, known, programs.value, self.lanes, self.budget)
        self.programs = max(self.programs, programs.value)

    def _kernel(self, value: Value) -> ast.FunctionDef:
        """The kernel as syntax, where its name means nothing else."""
        found = self.classes.kernel(value)
        function = self.function(value) if isinstance(value, DottedName) else None
        if found is None or found.definitions[1:] or function is None:
            raise Unreadable
        node = function.node
        if not isinstance(node, ast.FunctionDef) or not _has_tritons_language(function.file):
            raise Unreadable
        # A second decorator may change what the kernel is given.
        decorators = [ast.unparse(one) for one in node.decorator_list]
        return node if len(decorators) == 1 and "jit" in decorators[0] else unreadable()
