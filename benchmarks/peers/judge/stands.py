"""Stands for all of vLLM but the few modules under judgement."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

SILENT = ("logger", "init_logger")


@dataclass
class World:
    """What stands answer: `truth` is that of every one that is not named in `answers`."""

    truth: bool = False
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)


class Stand:
    """Attributes are stands, calls are written down, and any arithmetic gives a stand."""

    def __init__(self, path: str, world: World) -> None:
        self.__dict__.update(_path=path, _world=world)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._world.answers:
            return self._world.answers[name]
        return Stand(f"{self._path}.{name}", self._world)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], (FunctionType, type)):
            return args[0]  # a decorator
        if not any(f".{name}." in f".{self._path}." for name in SILENT):
            self._world.calls.append(self._path)
        return Stand(f"{self._path}()", self._world)

    def _same(self, *_: Any) -> Any:
        return self

    def _truth(self, *_: Any) -> bool:
        return self._world.truth

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _same
    __rtruediv__ = __floordiv__ = __lshift__ = __or__ = __ror__ = __abs__ = __neg__ = _same
    __getitem__ = __enter__ = __round__ = _same
    __bool__ = __lt__ = __gt__ = __le__ = __ge__ = _truth

    def __contains__(self, _: Any) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter((self, self))

    def __len__(self) -> int:
        return 2

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, _: str) -> str:
        return self._path

    def __exit__(self, *_: object) -> None:
        return None

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return (object,)


class _StandModule(ModuleType):
    """A module that has every name; `known` ones work."""

    def __init__(self, name: str, world: World, known: dict[str, Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__.update(_world=world, _known=known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._known:
            return self._known[name]
        return Stand(f"{self.__name__}.{name}", self._world)


class _Finder(MetaPathFinder, Loader):
    """Finds the modules under judgement in the tree, and a stand for all else of `roots`."""

    def __init__(self, roots: frozenset[str], own: dict[str, Path], make: Any) -> None:
        self.roots, self.own, self.make = roots, own, make

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self.own:
            return spec_from_file_location(fullname, self.own[fullname])
        if fullname.partition(".")[0] in self.roots:
            return spec_from_loader(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module: ModuleType = self.make(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        return None


@contextmanager
def stood_in(
    package: str, own: dict[str, Path], world: World, known: dict[str, Any]
) -> Iterator[None]:
    """Import from `own` and from stands; what is not installed at all is a stand too."""
    roots = frozenset({package, *(name for path in own.values() for name in _lacking(path))})
    finder = _Finder(roots, own, lambda name: _StandModule(name, world, known))
    _forget(roots)
    sys.meta_path.insert(0, finder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget(roots)


def _forget(roots: frozenset[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in roots]:
        del sys.modules[name]


def _lacking(path: Path) -> Iterator[str]:
    """Packages that a module imports and that are not installed here."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for root in (name.partition(".")[0] for name in names):
            if root not in sys.modules and find_spec(root) is None:
                yield root
