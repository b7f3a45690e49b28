"""What a followed warm-up changes of what is there before it: the engine's objects, its modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from codemods.engine.sources import SourceFile
from codemods.recipes.warm_up.values import (
    Arguments,
    DottedName,
    Known,
    Setting,
    Tensor,
    Value,
    Varying,
)

# Methods that change a list, a set, a dictionary or a NumPy array.
_CHANGERS = frozenset(
    {"add", "append", "clear", "discard", "extend", "fill", "insert", "pop", "popitem", "remove"}
    | {"resize", "setdefault", "sort", "update"}
)
_RANDOM = re.compile(
    r"torch\.(?:(?:cuda\.|random\.)?(?:manual_seed|seed)(?:_all)?|normal|bernoulli|multinomial"
    r"|rand(?:n|int|perm)?(?:_like)?)"
    r"|random\.(?!Random$|SystemRandom$|getstate$)\w+"
    r"|numpy\.random\.(?!default_rng$|Generator$|RandomState$|SeedSequence$|get_state$)[a-z_]+"
)
_FOR_THE_PROCESS = re.compile(
    r"torch\.(?:set_\w+|use_deterministic_algorithms|autograd\.set_\w+)"
    r"|os\.(?:putenv|unsetenv|chdir|umask)|numpy\.set\w+|gc\.(?:enable|disable|freeze)"
    r"|warnings\.(?:filterwarnings|simplefilter)"
)
_VIEWS = "contiguous|detach|flatten|narrow|numpy|reshape|select|squeeze|unsqueeze|view"
_STEP = rf"(?:\.(?:{_VIEWS})\([^()]*\)|\.\w+|\[.*?\])"


@dataclass(eq=False)
class Effects:
    """What has been changed and not put back; `roots` are the texts of what the engine has."""

    roots: Sequence[str]
    left: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        listed = "|".join(map(re.escape, self.roots))
        self._path = re.compile(rf"(?:{listed}){_STEP}*")

    def written(self, base: Value, name: str, value: Value | None = None) -> None:
        """`base.name = value`, or `name` is "" and what `base` holds is changed."""
        if not self._was_there(base):
            return
        path = f"{base.text}.{name}" if name else base.text
        kept = path if name else f"{path}.clone()"
        if value is not None and value.text == kept:
            self.left.pop(path, None)
        else:
            self.left.setdefault(path, f"the warm-up writes to {path}")

    def called(
        self, base: Value, name: str, given: Arguments, contexts: Sequence[str] = ()
    ) -> None:
        """A call of `base.name`, or of `base` where `name` is "", inside these `with` blocks."""
        function = _full_name(base, name) if isinstance(base, DottedName) else None
        first = given[0][0] if given[0] else None
        if function is not None:
            self._function_called(function, given, contexts)
        if function == "setattr" and len(given[0]) > 1 and first is not None:
            self.written(first, str(getattr(given[0][1], "value", "")))
        elif name in _CHANGERS or (name.endswith("_") and not name.startswith("_")):
            self.written(base, "", first)

    def _function_called(self, function: str, given: Arguments, contexts: Sequence[str]) -> None:
        if function.rpartition(".")[2] in contexts:
            return  # `with torch.set_grad_enabled(False):` puts it back
        if _RANDOM.fullmatch(function):
            if "generator" not in given[1] and "fork_rng" not in contexts:
                self.left[function] = f"the warm-up changes the random state with {function}"
        elif _FOR_THE_PROCESS.fullmatch(function):
            self._setting_changed(function, given)

    def _setting_changed(self, function: str, given: Arguments) -> None:
        getter = function.replace("set_", "get_", 1)
        if any(one.text == f"{getter}()" for one in given[0]):
            self.left.pop(function, None)
        else:
            self.left[function] = f"the warm-up calls {function}, which changes the whole process"

    def _was_there(self, base: Value) -> bool:
        """Whether something is the engine's or a module's, and not made by the warm-up."""
        if isinstance(base, DottedName):
            return True
        unknown = isinstance(base, (Setting, Tensor, Varying))
        return unknown and self._path.fullmatch(base.text) is not None


def is_nothing(value: Value | None) -> bool:
    """Whether a value is what an unused place of a buffer holds."""
    return value in (Known(0), Known(-1))


def _full_name(base: DottedName, name: str) -> str:
    """A function's name as its own module has it."""
    path = f"{base.text}.{name}" if name else base.text
    first, _, rest = path.partition(".")
    if base.imported is not None:
        origin = ".".join(filter(None, (base.imported.module, base.imported.name)))
    else:
        origin = _imported_as(base.file, first)
    return f"{origin}.{rest}" if rest else origin


def _imported_as(file: SourceFile, name: str) -> str:
    for node in file.tree.body if file.tree is not None else ():
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                module = getattr(node, "module", None)
                return f"{module}.{alias.name}" if module else alias.name
    return name
