"""The runner and its block tables, as a warm-up or a request finds them when it is followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from codemods.engine.checkout import RUNNER as RUNNER_FILE
from codemods.engine.classes import Lineage
from codemods.engine.resolve import Definition, definitions, imported
from codemods.engine.sources import SourceFile, Sources
from codemods.recipes.slot_mapping.facts.names import METHOD, PARAMETER
from codemods.recipes.warm_up.effects import Effects, is_nothing
from codemods.recipes.warm_up.evaluate import Follower, NoAttribute, Raised, Way
from codemods.recipes.warm_up.launches import Kernel
from codemods.recipes.warm_up.values import (
    Arguments,
    DottedName,
    Function,
    Instance,
    Items,
    Known,
    Setting,
    Tensor,
    Value,
    Varying,
    arithmetic,
)
from codemods.transforms.do_not_specialize import unspecialised
from codemods.transforms.jit import parameters
from codemods.transforms.names import dotted

RUNNER = Setting("model_runner")
WORKER = Setting("worker")
GROUPS = Setting("model_runner.input_batch.block_table")
TABLE = Setting("block_tables[…]")
# One table, of one KV cache group, where TABLE is each of them in turn.
ONE_TABLE = Setting("block_tables[…][one]")
COUNTS = "num_blocks_per_row"
BATCH_FILE = "v1/worker/gpu_input_batch.py"
# Positions that a row with one block has, but for engines with smaller blocks than the default's.
_POSITIONS_OF_A_ROW = 16
_ARGUMENTS = ("num_reqs", "query_start_loc", "positions")
_DTYPES = {"query_start_loc": "int32", "positions": "int64"}
_HAS_A_DEVICE = frozenset({"torch.cuda.is_available", "current_platform.is_cuda_alike"})


class Launch(NamedTuple):
    """One launch: the kernel, where, and the constants that it is given."""

    kernel: str
    line: int
    constants: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Limits:
    """What an engine allows of a batch; None for more than the warm-up uses."""

    requests: int | None = None
    tokens: int | None = None


@dataclass(eq=False)
class Classes:
    """The tables' classes as syntax, and which methods set which of their attributes."""

    sources: Sources
    groups: Instance
    table: Instance
    kernels: Sequence[Kernel]
    # Whether all that the classes inherit is in the package.
    whole: bool = True

    @classmethod
    def of(
        cls, sources: Sources, groups: Lineage, table: Lineage, kernels: Sequence[Kernel]
    ) -> Classes | None:
        """None where the running Python does not accept a file of theirs."""
        found = [_syntax(lineage) for lineage in (groups, table)]
        if found[0] is None or found[1] is None:
            return None
        whole = not groups.unknown and not table.unknown
        own = Instance("groups", found[0]), Instance("table", found[1])
        return cls(sources, *own, kernels, whole)

    @cached_property
    def setters(self) -> Mapping[str, Mapping[str, set[str]]]:
        """By an instance's text, for each attribute the methods that set it."""
        return {one.text: _setters(one) for one in (self.groups, self.table)}

    def kernel(self, value: Value) -> Kernel | None:
        """The kernel that a launched value is, None where it is not known."""
        if isinstance(value, DottedName):
            # By name: an edit of the file gives its functions new nodes.
            found = [*_function_names(_definitions(self.sources, value))]
            for one in self.kernels:
                if any((one.file.name, node.name.value) in found for node in one.definitions):
                    return one
        last = value.text.rpartition(".")[2]
        return next((one for one in self.kernels if one.name == last), None)

    def lack(self, tables: Instance, name: str) -> bool:
        """Whether nothing that makes the tables has such a name; a comparison's is none."""
        if not self.whole or not name.islower() or name.startswith("__"):
            return False
        return not _says(name, *(file.data for file, _ in tables.classes), *self._makers)

    def lack_at_start(self, tables: Instance, name: str) -> bool:
        """Whether nothing but a method's call gives the tables such an attribute."""
        if not self.whole or "__init__" in self.setters[tables.text].get(name, ()):
            return False
        own = (
            ast.unparse(node).encode()
            for _, owner in tables.classes
            for node in owner.body
            if not isinstance(node, ast.FunctionDef) or node.name == "__getattr__"
        )
        return not _says(name, *own, *self._makers)

    def batch_lacks(self, name: str) -> bool:
        """Whether nothing that makes the batch has such a name."""
        batch = re.compile(rb"^class InputBatch(?:\(object\))?:", re.MULTILINE)
        is_there = any(map(batch.search, self._makers))
        return is_there and name.islower() and not _says(name, *self._makers)

    @cached_property
    def _makers(self) -> tuple[bytes, ...]:
        """The text of the runner and of its batch, which make the tables."""
        files = (self.sources.read(relative) for relative in (RUNNER_FILE, BATCH_FILE))
        return tuple(file.data for file in files if file is not None)

    def fresh(self) -> tuple[Instance, Instance]:
        """The tables of an engine that has just been made."""
        return Instance("groups", self.groups.classes), Instance("table", self.table.classes)


def _says(name: str, *texts: bytes) -> bool:
    """Whether a text has the name, or a method that answers to any name."""
    word = re.compile(rb"\b%b\b|def __getattr__\b" % name.encode())
    return any(map(word.search, texts))


def _syntax(lineage: Lineage) -> tuple[tuple[SourceFile, ast.ClassDef], ...] | None:
    found = []
    for one in lineage.classes:
        nodes = [
            node
            for node in _definitions_in(one.file.tree.body if one.file.tree else ())
            if isinstance(node, ast.ClassDef) and node.name == one.name
        ]
        if not nodes:
            return None
        found.append((one.file, nodes[-1]))
    return tuple(found)


def _definitions_in(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those behind `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _definitions_in(node.body)
            for part in ("orelse", "finalbody"):
                yield from _definitions_in(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _definitions_in(handler.body)


_CHANGERS = frozenset(
    {"add", "append", "clear", "discard", "extend", "pop", "remove", "setdefault", "update"}
)


def _setters(instance: Instance) -> dict[str, set[str]]:
    """For each attribute of `self`, the methods that give it a value or add to what it holds."""
    found: dict[str, set[str]] = {}
    for _, owner in instance.classes:
        for method in owner.body:
            if isinstance(method, ast.FunctionDef):
                for name in _set_in(method):
                    found.setdefault(name, set()).add(method.name)
    return found


def _set_in(method: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            target: ast.expr = node
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _CHANGERS
        ):
            target = node.func.value
        else:
            continue
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
        ):
            yield target.attr


class Live(Enum):
    """Which row has a request."""

    NOWHERE = 0
    FIRST_ROW = 1
    ANOTHER_ROW = 2


@dataclass(eq=False)
class SimulatedTables:
    """An engine on the way through a warm-up or a request; `live` is where requests are."""

    classes: Classes
    live: Live = Live.NOWHERE
    raises: bool = False
    limits: Limits = Limits()
    # The methods that requests enter: what these alone set is known at an engine's start.
    entered: frozenset[str] | None = None
    launches: set[Launch] = field(default_factory=set)
    rows: set[str] = field(default_factory=set)
    on_device: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    changed_live_rows: bool = False
    asks_for_limits: bool = False

    def __post_init__(self) -> None:
        self.groups, self.table = self.classes.fresh()
        self.effects = Effects((RUNNER.text, WORKER.text, TABLE.text, COUNTS))
        self._is_inside = False  # in a method of the tables
        self._committed = False
        self.slots_left = False
        self.launched_over_live_rows = False
        self.follower: Follower | None = None

    def attribute(self, base: Value, name: str) -> Value | None:
        if isinstance(base, DottedName):
            return Known(True) if (base.text, name) == ("HAS_TRITON", "") else None
        if isinstance(base, Setting):
            return self._of_a_setting(base, name)
        if isinstance(base, Instance):
            return self._of_a_table(base, name)
        return None

    def _of_a_setting(self, base: Setting, name: str) -> Value | None:
        if (base, name) == (WORKER, "model_runner"):
            return RUNNER
        if base in (RUNNER, WORKER) and name == "device":
            return Setting("device")
        if base.text.endswith("device") and name == "type":
            return Known("cuda")
        if base == RUNNER and name == "requests":
            return self._requests()
        if base.text == "model_runner.input_batch":
            if name == "num_reqs":
                return Known(int(self._is_live))
            if name in ("req_ids", "_req_ids", "req_id_to_index"):
                return self._requests()
            if self.classes.batch_lacks(name):
                raise NoAttribute(f"input_batch.{name}")
        if base == GROUPS and name == "block_tables":
            return Items((TABLE,), whole=False)
        if base in (GROUPS, TABLE) and name.startswith("["):
            return TABLE if name == "[]" else ONE_TABLE
        if base in (TABLE, ONE_TABLE):
            return self._of_the_table(name)
        if base.text == COUNTS and name.startswith("["):
            return Known(int(self._is_live and (name, self.live) != ("[0]", Live.ANOTHER_ROW)))
        return None

    @property
    def _is_live(self) -> bool:
        return self.live is not Live.NOWHERE

    def _requests(self) -> Value:
        return Items((Setting("request"),), whole=False) if self._is_live else Items(())

    def _of_the_table(self, name: str) -> Value | None:
        if name == COUNTS:
            return Setting(COUNTS)
        limit = {
            "max_num_reqs": self.limits.requests or 256,
            "max_num_batched_tokens": self.limits.tokens or 8192,
        }.get(name)
        if limit is None:
            return None
        self.asks_for_limits = True
        return Known(limit)

    def _of_a_table(self, base: Instance, name: str) -> Value | None:
        if base is self.groups and name in ("block_tables", "[]"):
            items = Items((self.table,), whole=False)
            return items if name == "block_tables" else self.table
        if name in base.attributes or base.method(name) is not None:
            return None
        setters = self.classes.setters[base.text].get(name, set())
        text = f"self.{name}"
        if not setters - {"__init__"}:
            return Setting(text)
        if self.entered is None or not setters - {"__init__"} <= self.entered:
            return Varying(text)
        if self.classes.lack_at_start(base, name):
            raise NoAttribute(name)
        return _first_value(base, name, "__init__" in setters) or Setting(text)

    def called(self, base: Value, name: str, given: Arguments) -> Value | None:
        if not self._is_inside and base not in (GROUPS, TABLE, ONE_TABLE):
            self._changed_by_a_call(base, name, given)
        if isinstance(base, DottedName):
            return self._function_called(f"{base.text}.{name}" if name else base.text, given)
        if isinstance(base, Setting) and base.text.startswith(COUNTS):
            return self._of_counts(base, name)
        if base == ONE_TABLE and name == METHOD:
            self.faults.append("the warm-up computes the slots of one KV cache group alone")
        if base in (GROUPS, TABLE, ONE_TABLE):
            return self._of_tables(self.groups if base == GROUPS else self.table, name, given)
        return None

    def _changed_by_a_call(self, base: Value, name: str, given: Arguments) -> None:
        assert self.follower is not None
        filled = given[0][0] if given[0] else Known(0)
        if name in ("zero_", "fill_", "fill") and is_nothing(filled) and _is_a_buffer(base):
            self._emptied(base)
        else:
            self.effects.called(base, name, given, self.follower.contexts)

    def _emptied(self, buffer: Value) -> None:
        if "slot_mapping" in buffer.text:
            self.slots_left = False

    def _function_called(self, path: str, given: Arguments) -> Value | None:
        if path in _HAS_A_DEVICE:
            return Known(True)
        if path == "current_platform.is_cpu":
            return Known(False)
        first = given[0][0] if given[0] else None
        if isinstance(first, Setting) and first.text.startswith(COUNTS):
            return self._of_counts(first, path.rpartition(".")[2])
        return None

    def _of_counts(self, base: Setting, name: str) -> Value | None:
        of_free_rows = base.text.endswith("== 0")
        if name in ("any", "sum", "max", "count_nonzero", "int", "bool"):
            return Known(True) if of_free_rows else Known(int(self._is_live))
        if name == "all" and of_free_rows:
            return Known(not self._is_live)
        if name == "Eq":
            return Setting(f"{COUNTS} == 0")
        return base

    def _of_tables(self, tables: Instance, name: str, given: Arguments) -> Value | None:
        if name == METHOD:
            self._look_at_tensors(given)
            self._fill_slots(given)
        elif name in ("add_row", "append_row", "clear_row"):
            return self._row(name, given)
        elif name == "commit_block_table":
            self.on_device = set(self.rows)
            self._committed = True
            return Known(None)
        method = tables.method(name)
        if method is not None:
            return self._own_method(method, given)
        if self.classes.lack(tables, name):
            self.faults.append(f"the warm-up calls {name} of the tables, which have no such method")
        return None

    def _own_method(self, method: Function, given: Arguments) -> Value:
        assert self.follower is not None
        self._is_inside = True
        try:
            return self.follower.call(method, given)
        finally:
            self._is_inside = False

    def _fill_slots(self, given: Arguments) -> None:
        """The launch gives each token the slot that the tables on the device have for it."""
        self.launched_over_live_rows |= self.live is Live.FIRST_ROW
        starts = _named(given).get("query_start_loc")
        no_token = starts is not None and starts.text.startswith("torch.zeros(")
        self.slots_left = bool(self.on_device or not self._committed) and not no_token

    def _row(self, name: str, given: Arguments) -> Value:
        positional = [*given[0], *given[1].values()]
        row = positional[-1].text if positional else ""
        if self._is_live and (row, self.live) != ("0", Live.ANOTHER_ROW):
            self.changed_live_rows = True
        if name == "clear_row" or _is_nothing(positional[0]):
            self.rows.discard(row)
        else:
            self.rows.add(row)
        return Known(None)

    def stored(self, base: Value, name: str, value: Value) -> None:
        if isinstance(base, Setting) and base.text == COUNTS and value == Known(0):
            self.rows.clear()
        if self._is_inside:
            return
        if not name and is_nothing(value) and _is_a_buffer(base):
            self._emptied(base)
        else:
            self.effects.written(base, name, value)

    def _look_at_tensors(self, given: Arguments) -> None:
        values = _named(given)
        for name, dtype in _DTYPES.items():
            value = values.get(name)
            if not isinstance(value, Tensor):
                continue
            gives = f"the warm-up gives {name}"
            if value.dtype not in (None, dtype):
                self.faults.append(f"{gives} of {value.dtype}, and requests give {dtype}")
            if isinstance(value.device, Known):
                self.faults.append(f"{gives} on the host, and requests on the device")
            if value.start != Known(0):
                self.faults.append(f"{gives} from element {value.start.text} of a tensor on")
            if name == "positions" and _is_beyond(value):
                self.faults.append("the warm-up gives a position beyond the blocks of its row")
        self.faults += _misfits(**{name: values.get(name) for name in _ARGUMENTS})

    def function(self, path: DottedName) -> Function | None:
        for one in reversed(_definitions(self.classes.sources, path)):
            if isinstance(one.node, cst.FunctionDef) and one.file.tree is not None:
                for node in _definitions_in(one.file.tree.body):
                    if isinstance(node, ast.FunctionDef) and node.name == one.node.name.value:
                        return Function(one.file, node)
        return None

    def launched(
        self, kernel: Value, grid: Value, call: ast.Call, given: Arguments, way: Way
    ) -> None:
        found = self.classes.kernel(kernel)
        names = [p.name.value for p in parameters(found.definitions[0])] if found else []
        passed: dict[str, Value] = {
            names[place] if place < len(names) else str(place): value
            for place, value in enumerate(given[0])
        }
        constants = set()
        by_name = {**passed, **given[1]}
        if found is not None:
            varying = {name for name, value in by_name.items() if isinstance(value, Varying)}
            self.faults += _chosen_by_decorators(found, varying)
        for name, value in by_name.items():
            if name == PARAMETER:
                continue
            if isinstance(value, Varying) and value.is_truth:
                value = Known(way.decide(value, value.text))
            if isinstance(value, Known):
                constants.add((name, value.text))
            elif isinstance(value, Varying) and found and name not in _unspecialised(found):
                self.faults.append(
                    f"{found.name} is launched with another {name} for each batch ({value.text}), "
                    "and Triton compiles it again for each"
                )
        name = found.name if found else kernel.text
        self.launches.add(Launch(name, call.lineno, frozenset(constants)))
        if self.raises:
            raise Raised("the launch")


def _named(given: Arguments) -> dict[str, Value]:
    """The arguments of `compute_slot_mapping` by name."""
    return {**dict(zip(_ARGUMENTS, given[0], strict=False)), **given[1]}


def _misfits(
    num_reqs: Value | None, query_start_loc: Value | None, positions: Value | None
) -> Iterator[str]:
    """What of the arguments does not fit the others, where they are known."""
    if not isinstance(query_start_loc, Tensor):
        return
    length, last = query_start_loc.length, query_start_loc.largest
    if _is_more(num_reqs, arithmetic(length, ast.Sub(), Known(1))):
        yield "the warm-up gives a query_start_loc that is too short for its requests"
    if isinstance(positions, Tensor) and _is_more(last, positions.length):
        yield "the warm-up gives a query_start_loc that goes beyond positions"


def _is_beyond(positions: Tensor) -> bool:
    return _is_more(positions.largest, Known(_POSITIONS_OF_A_ROW - 1)) and not _is_more(
        positions.length, positions.largest or Known(0)
    )


def _is_more(one: Value | None, other: Value) -> bool:
    return (
        isinstance(one, Known)
        and isinstance(other, Known)
        and isinstance(one.value, int)
        and isinstance(other.value, int)
        and one.value > other.value
    )


def _is_a_buffer(base: Value) -> bool:
    """Whether a value is an array of the tables, or a view of one."""
    return base.text.startswith((f"{TABLE.text}.", f"{ONE_TABLE.text}.", COUNTS))


def _definitions(sources: Sources, path: DottedName) -> tuple[Definition, ...]:
    if not path.file.name:
        return ()  # this tool's own text, in no file yet: it calls nothing of its own
    if path.imported is None:
        return definitions(sources, path.file, path.text)
    return imported(sources, path.file, path.imported, path.text.partition(".")[2])


def _function_names(found: Sequence[Definition]) -> Iterator[tuple[str, str]]:
    """The file and the name of each function."""
    for one in found:
        if isinstance(one.node, cst.FunctionDef):
            yield one.file.name, one.node.name.value


def _is_nothing(ids: Value) -> bool:
    """`[]`, or a tuple of such."""
    if not isinstance(ids, Items):
        return False
    return all(_is_nothing(item) for item in ids.items)


def _chosen_by_decorators(kernel: Kernel, varying: Set[str]) -> Iterator[str]:
    """What `heuristics` and `autotune` choose again when one of these arguments changes."""
    for definition in kernel.definitions:
        for decorator in definition.decorators:
            call = decorator.decorator
            if not isinstance(call, cst.Call):
                continue
            last = (dotted(call.func) or "").rpartition(".")[2]
            if last not in ("heuristics", "autotune"):
                continue
            words = re.findall(r"\w+", kernel.file.module.code_for_node(call))
            read = sorted(varying & {*words})
            if read:
                yield f"{kernel.name}'s {last} reads {read[0]}, which changes with each batch"
            elif last == "heuristics" and not isinstance(call.args[0].value, cst.Dict):
                yield f"{kernel.name}'s heuristics are not written in its decorator"


def _unspecialised(kernel: Kernel) -> frozenset[str]:
    return frozenset.intersection(
        *(unspecialised(kernel.file.module, one) for one in kernel.definitions)
    )


def _first_value(instance: Instance, name: str, by_constructor: bool) -> Value | None:
    """The constant that the constructor or the class gives an attribute."""
    target = f"self.{name}" if by_constructor else name
    for _, owner in instance.classes:
        body: Iterable[ast.AST] = owner.body
        if by_constructor:
            inits = (one for one in body if getattr(one, "name", "") == "__init__")
            body = (node for one in inits for node in ast.walk(one))
        found = next(filter(None, (_constant(node, target) for node in body)), None)
        if found is not None:
            return found
    return None


def _constant(node: ast.AST, target: str) -> Known | None:
    """The constant that a statement assigns to the target."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return None
    if isinstance(node.value, ast.Constant) and target in map(ast.unparse, targets):
        return Known(node.value.value)
    return None
