"""What stands in for the rest of vLLM while a proof runs the tree's block table and warm-up.

Only the modules under proof are the tree's own. `known_names` is the whole list of what they get
instead of vLLM's other modules, by name, whatever module a fork imports it from. Any other name is
a `StandIn`. The row of `keys` says which names were taken.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from codemods.prove.job import CannotRunError
from codemods.prove.unknown import Choices

THE_REAL_THING = frozenset({"triton", "tl"})


@dataclass(frozen=True)
class Group:
    """A context-parallel group as the block table reads it."""

    world_size: int
    rank_in_group: int


@dataclass
class Parallelism:
    """The context-parallel groups in force; None is a group that was never initialised."""

    dcp: Group | None = None
    pcp: Group | None = None

    def get_dcp_group(self) -> Group:
        assert self.dcp is not None, "decode context model parallel group is not initialized"
        return self.dcp

    def get_pcp_group(self) -> Group:
        assert self.pcp is not None, "prefill context parallel group is not initialized"
        return self.pcp

    def get_total_cp_world_size(self) -> int:
        return (self.dcp.world_size if self.dcp else 1) * (self.pcp.world_size if self.pcp else 1)


class _StandInType(type):
    """Lets a stand-in be called, subscripted, joined in a union, entered, decorated with."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not StandIn:
            return super().__call__(*args, **kwargs)
        if (
            len(args) == 1
            and not kwargs
            and (inspect.isfunction(args[0]) or inspect.isclass(args[0]))
        ):
            return args[0]
        return cls

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    def __ror__(cls, _: Any) -> Any:
        return cls

    def __bool__(cls) -> bool:
        return cls is not StandIn

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *_: object) -> None:
        return None


class StandIn(metaclass=_StandInType):
    """Stands in for anything that only has to be importable; false, and does nothing."""


def cdiv(a: int, b: int) -> int:
    """Ceiling division."""
    return -(a // -b)


def known_names(parallelism: Parallelism, pad_slot_id: int, buffer: object) -> dict[str, object]:
    """Every name that is given a working value in place of vLLM's."""
    import triton
    import triton.language as tl

    return {
        "triton": triton,
        "tl": tl,
        "HAS_TRITON": True,
        "LOG2E": 1.4426950408889634,
        "LOGE2": 0.6931471805599453,
        "cdiv": cdiv,
        "PAD_SLOT_ID": pad_slot_id,
        "PIN_MEMORY": False,
        "is_pin_memory_available": lambda: False,
        "CpuGpuBuffer": buffer,
        "get_dcp_group": parallelism.get_dcp_group,
        "get_pcp_group": parallelism.get_pcp_group,
        "get_total_cp_world_size": parallelism.get_total_cp_world_size,
        "current_platform": Platform(),
        "init_logger": StandIn,
        "logger": StandIn,
    }


def buffer_class(source: str | None) -> tuple[type[Any], bool]:
    """The tree's own CpuGpuBuffer from its source, or this module's where that needs more of vLLM.

    Returns the class and whether it is the tree's own.
    """
    import numpy as np
    import torch

    if source is not None:
        names: dict[str, Any] = {
            "torch": torch,
            "np": np,
            "PIN_MEMORY": False,
            "__name__": "buffer",
        }
        try:
            exec(compile(source, "CpuGpuBuffer", "exec"), names)
            own: type[Any] = names["CpuGpuBuffer"]
            made = own(1, 2, dtype=torch.int32, device=torch.device("cpu"), pin_memory=False)
            if made.np.shape == (1, 2) and made.cpu.data_ptr() != made.gpu.data_ptr():
                return own, True
        except Exception:  # whatever it lacks, this module's is used, and the row says so
            return _Buffer, False
    return _Buffer, False


class _Buffer:
    """A host tensor, its NumPy view, and a second tensor that stands for the device's."""

    def __init__(
        self, *size: int, dtype: Any, device: Any, with_numpy: bool = True, **_: Any
    ) -> None:
        import torch

        self.cpu = torch.zeros(*size, dtype=dtype)
        self.gpu = torch.zeros_like(self.cpu, device=device)
        if with_numpy:
            self.np = self.cpu.numpy()

    def copy_to_gpu(self, n: int | None = None) -> Any:
        return self.gpu[:n].copy_(self.cpu[:n])

    def copy_to_cpu(self, n: int | None = None) -> Any:
        return self.cpu[:n].copy_(self.gpu[:n])


class _StandInModule(ModuleType):
    """A module that has every name; the known ones work."""

    def __init__(self, name: str, finder: StandInFinder) -> None:
        super().__init__(name)
        self.__dict__["_finder"] = finder

    def __getattr__(self, name: str) -> Any:
        finder: StandInFinder = self.__dict__["_finder"]
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in THE_REAL_THING:
            finder.taken.add(name)
        if name not in finder.known and finder.choices is not None:
            return finder.choices.value(name)
        return finder.known.get(name, StandIn)


@dataclass
class StandInFinder(MetaPathFinder, Loader):
    """Finds the tree's own modules under proof, and stands in for the rest of the package.

    `own` maps dotted names to files. `spare` are first parts of names that the modules under proof
    import and that may be missing here; they are only stood in for when nothing else finds them.
    `taken` collects what they took of all this, by name. While `choices` is set, a name without a
    value is an unknown value in place of a stand-in.
    """

    package: str
    own: dict[str, Path]
    known: dict[str, object]
    spare: frozenset[str] = frozenset()
    taken: set[str] = field(default_factory=set)
    choices: Choices | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self.own:
            return spec_from_file_location(fullname, self.own[fullname])
        top = self.package.partition(".")[0]
        if (
            fullname == top
            or fullname.startswith(f"{top}.")
            or fullname.partition(".")[0] in self.spare
        ):
            return spec_from_loader(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name in self.spare:
            self.taken.add(spec.name)
        return _StandInModule(spec.name, self)

    def exec_module(self, module: ModuleType) -> None:
        return None


@contextmanager
def asking(finder: StandInFinder, module: ModuleType, choices: Choices) -> Iterator[None]:
    """Run code of `module` so that what it asks about an engine is asked of `choices`."""
    platform = finder.known.get("current_platform")
    names = {name for name, value in vars(module).items() if value is StandIn}
    unknown = {name: choices.value(name) for name in names}
    folder = os.path.commonpath([str(path.parent) for path in finder.own.values()])
    finder.choices = choices
    if isinstance(platform, Platform):
        platform.choices = choices
    try:
        with (
            patch.dict(vars(module), unknown),
            patch.object(os, "environ", AskedEnvironment(choices, folder, os.environ)),
        ):
            yield
    finally:
        finder.choices = None
        if isinstance(platform, Platform):
            platform.choices = None


@contextmanager
def installed(finder: StandInFinder) -> Iterator[None]:
    """Import through `finder` first; on the way out its modules are forgotten again."""
    top = finder.package.partition(".")[0]
    spare = {name for name in finder.spare - {top} if importlib.util.find_spec(name) is None}
    finder.spare = frozenset(spare)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        roots = {top, *spare}
        for name in [name for name in sys.modules if name.partition(".")[0] in roots]:
            del sys.modules[name]


def imported(name: str) -> ModuleType:
    """A module of the tree; raises CannotRunError where it does not import here."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CannotRunError(f"{name} does not import here: {error}") from error


class RunnerStandIn(SimpleNamespace):
    """An object of the runner's: it has what the proof gives it, and nothing else."""


class Runner:
    """The model runner, or its batch, as a warm-up sees it: what the proof gives it, and more.

    An attribute that the tree's class defines and the proof has no value for is an unknown value.
    One that the class does not define is not there; `names` is None where that is unknown.
    """

    def __init__(
        self, path: str, choices: Choices, names: frozenset[str] | None, **held: object
    ) -> None:
        self.__dict__.update(held)
        self.__dict__["_stand_in"] = (path, choices, names)

    def __getattr__(self, name: str) -> Any:
        path, choices, names = self.__dict__["_stand_in"]
        if name.startswith("__") or (names is not None and name not in names):
            raise AttributeError(f"the tree gives {path} no attribute `{name}`")
        return choices.value(f"{path}.{name}")


class Platform:
    """vLLM's current_platform on an engine with a GPU; `kind` is "cuda" or "hip"."""

    def __init__(self) -> None:
        self.kind = "cuda"
        self.choices: Choices | None = None
        self.device_type = "cuda"

    def is_cuda(self) -> bool:
        return self.kind == "cuda"

    def is_rocm(self) -> bool:
        return self.kind == "hip"

    def is_cuda_alike(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("is_"):
            return lambda: False
        return StandIn if self.choices is None else self.choices.value(f"current_platform.{name}")


class AskedEnvironment(dict[str, str]):
    """The environment while the tree's code runs: whether it has a variable is asked of `choices`.

    Only what files under `folder` ask is answered so. Writing goes to the process's environment.
    """

    def __init__(self, choices: Choices, folder: str, real: Any) -> None:
        super().__init__(real)
        self._choices, self._folder, self._real = choices, folder, real

    def get(self, name: str, default: Any = None) -> Any:
        if not self._asked_by_the_tree():
            return self._real.get(name, default)
        if self._choices.answer(f"the environment variable {name} is set"):
            return self._choices.value(f"os.environ[{name!r}]")
        return default

    def __getitem__(self, name: str) -> Any:
        if not self._asked_by_the_tree():
            return self._real[name]
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        if not self._asked_by_the_tree():
            return name in self._real
        return self._choices.answer(f"the environment variable {name} is set")

    def __setitem__(self, name: str, value: str) -> None:
        self._real[name] = value

    def __delitem__(self, name: str) -> None:
        del self._real[name]

    def _asked_by_the_tree(self) -> bool:
        frame: FrameType | None = sys._getframe(1)
        for _ in range(3):
            if frame is not None and frame.f_code.co_filename.startswith(self._folder):
                return True
            frame = frame.f_back if frame is not None else None
        return False
