"""The one place that touches Triton's inner interfaces: launches, keys and compilation.

They are not public and move between releases. Seen in Triton 3.6.0, 3.7.1 and 3.9.0:
`triton.runtime.jit.JITFunction` and `create_function_from_signature`, `InterpretedFunction` of
`triton.runtime.interpreter`, `ASTSource` and `make_backend` of `triton.compiler`. When one has
gone, `CannotRunError` says which in one line.
"""

from __future__ import annotations

import importlib
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from codemods.prove.job import CannotRunError

NV_INFO_REGISTER_COUNT = 0x2F
NV_INFO_SIZED_VALUE = 4


@dataclass(frozen=True)
class Launch:
    """One launch as the tree made it: the kernel, its arguments, its grid."""

    kernel: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grid: Any

    @property
    def name(self) -> str:
        return str(getattr(self.kernel, "__name__", self.kernel))


@dataclass(frozen=True)
class Binary:
    """What a target got: `size` in bytes, `milliseconds` to compile, registers of a thread."""

    size: int
    milliseconds: int
    registers: int | None


def tensors_of(launch: Launch) -> Iterator[tuple[str, Any]]:
    """The tensors that a launch passes, by the kernel's names for them."""
    import torch

    names = [parameter.name for parameter in launch.kernel.params]
    given = [*zip(names, launch.args, strict=False), *launch.kwargs.items()]
    return ((name, value) for name, value in given if isinstance(value, torch.Tensor))


@contextmanager
def intercepted(on_launch: Callable[[Launch], object]) -> Iterator[None]:
    """Hand every launch of a compiled kernel to `on_launch` in its place."""
    with _replaced("triton.runtime.jit", "JITFunction", lambda _: on_launch):
        yield


@contextmanager
def observed(
    before_launch: Callable[[Launch], object],
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[None]:
    """Show every launch to `before_launch`, which may raise, then run it inside `around`.

    Under the interpreter or on a GPU, whichever the process runs kernels on.
    """

    def both(run: Callable[..., object]) -> Callable[[Launch], object]:
        def launch(this: Launch) -> object:
            before_launch(this)
            with around():
                return run(this.kernel, *this.args, grid=this.grid, warmup=False, **this.kwargs)

        return launch

    with (
        _scalars_as_new_numpy_wants(),
        _replaced("triton.runtime.interpreter", "InterpretedFunction", both),
        _replaced("triton.runtime.jit", "JITFunction", both),
    ):
        yield


@contextmanager
def _scalars_as_new_numpy_wants() -> Iterator[None]:
    """Have 3.6's interpreter take a scalar out of its one-element array, as 3.7 does.

    NumPy 2.4 refuses to make an int of an array that has a dimension.
    """
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    patch = getattr(interpreter, "_patch_lang_tensor", None)
    if patch is None:
        yield
        return

    def patch_and_squeeze(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        tensor.__index__ = lambda self: int(self.handle.data.squeeze())

    interpreter._patch_lang_tensor = patch_and_squeeze
    try:
        yield
    finally:
        interpreter._patch_lang_tensor = patch


@contextmanager
def _replaced(
    module: str, name: str, make: Callable[[Callable[..., object]], Callable[[Launch], object]]
) -> Iterator[None]:
    owner = _triton_name(module, name)
    original = owner.run
    launch = make(original)

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> object:
        return launch(Launch(self, args, kwargs, grid))

    owner.run = run
    try:
        yield
    finally:
        owner.run = original


class Binder:
    """Triton's own specialisation of launches for one target."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._gpu = _gpu_target(target)
        self._backend = _triton_name("triton.compiler", "make_backend")(self._gpu)
        self._create = _triton_name("triton.runtime.jit", "create_function_from_signature")
        self._bound: dict[int, tuple[Any, Callable[..., Any]]] = {}

    def key(self, launch: Launch) -> tuple[object, ...]:
        """What decides whether the launch compiles.

        The kernel's name, its parameters' names, a specialisation for each, then launch options.
        """
        specialization, options = self._specialize(launch)
        names = tuple(launch.kernel.signature.parameters)
        return (launch.name, names, *specialization, *sorted(options.items()))

    def compile(self, launch: Launch) -> Binary:
        """Compile the launch's kernel for the target, as the launch would have."""
        specialization, options = self._specialize(launch)
        names = [parameter.name for parameter in launch.kernel.params]
        values = _values(launch, names)
        signature = {name: item[0] for name, item in zip(names, specialization, strict=True)}
        constants = {
            (index,): values[name]
            for index, name in enumerate(names)
            if signature[name] == "constexpr"
        }
        attributes = {
            (index,): self._backend.parse_attr(item[1])
            for index, item in enumerate(specialization)
            if item[0] != "constexpr" and isinstance(item[1], str)
        }
        source = _triton_name("triton.compiler", "ASTSource")(
            launch.kernel, signature, constants, attributes
        )
        started = time.perf_counter()
        compiled = _triton_name("triton", "compile")(source, target=self._gpu, options=options)
        milliseconds = round(1000 * (time.perf_counter() - started))
        binary = compiled.asm.get("cubin") or compiled.asm.get("hsaco") or b""
        if not binary:
            raise CannotRunError(f"triton made no binary for {self.target}")
        return Binary(len(binary), milliseconds, registers(compiled.asm))

    def _specialize(self, launch: Launch) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
        kernel = launch.kernel
        if id(kernel) not in self._bound:
            try:
                bind = self._create(kernel.signature, kernel.params, self._backend)
            except (AttributeError, TypeError) as error:
                raise CannotRunError(
                    f"this triton binds launches in another way: {error}"
                ) from error
            self._bound[id(kernel)] = (kernel, bind)
        answer = self._bound[id(kernel)][1](*launch.args, **launch.kwargs)
        if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[1], list)):
            raise CannotRunError("this triton's binder answers in another shape")
        return answer[1], answer[2]


def one_of_each_kind(targets: Iterable[str]) -> list[str]:
    """Keys differ between Triton's backends, not between the processors of one."""
    kinds: dict[str, str] = {}
    for target in targets:
        kinds.setdefault(target.partition(":")[0], target)
    return list(kinds.values())


def key_difference(keys: Iterable[tuple[object, ...]]) -> str:
    """Parameters that tell two of a kernel's keys apart, or nothing where no two are of one."""
    for one, other in pairwise(sorted(keys, key=repr)):
        if one[:2] == other[:2] and isinstance(one[1], tuple):
            parts = zip(one[1], one[2:], other[2:], strict=False)
            return "; ".join(f"{name} is {a} and {b}" for name, a, b in parts if a != b)
    return ""


def registers(asm: dict[str, Any]) -> int | None:
    """Registers of a thread: a cubin's own count, or the vector registers of an AMD binary."""
    if "cubin" in asm:
        return _cubin_registers(asm["cubin"])
    found = re.search(r"^\s*\.vgpr_count:\s*(\d+)", str(asm.get("amdgcn", "")), re.MULTILINE)
    return int(found.group(1)) if found else None


def _cubin_registers(cubin: bytes) -> int | None:
    """The highest EIATTR_REGCOUNT in a cubin's `.nv.info` section (an ELF file of 64 bits)."""
    try:
        (table,) = struct.unpack_from("<Q", cubin, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
        sections = [struct.unpack_from("<IIQQQQ", cubin, table + size * i) for i in range(count)]
        names = sections[names_at][4]
        for name, _, _, _, offset, length in sections:
            start = names + name
            if cubin[start : cubin.index(b"\0", start)] == b".nv.info":
                return max(_register_counts(cubin[offset : offset + length]), default=None)
    except (struct.error, IndexError, ValueError):
        return None
    return None


def _register_counts(info: bytes) -> Iterator[int]:
    at = 0
    while at + 4 <= len(info):
        form, attribute, length = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != NV_INFO_SIZED_VALUE:
            continue
        if attribute == NV_INFO_REGISTER_COUNT and length == 8:
            yield struct.unpack_from("<II", info, at)[1]
        at += length


def _values(launch: Launch, names: list[str]) -> dict[str, Any]:
    given = dict(zip(names, launch.args, strict=False)) | launch.kwargs
    defaults = {
        name: parameter.default
        for name, parameter in launch.kernel.signature.parameters.items()
        if parameter.default is not parameter.empty
    }
    return {**defaults, **given}


def _gpu_target(target: str) -> Any:
    """`cuda:90` or `hip:gfx942` as Triton's GPUTarget. Raises CannotRunError for anything else."""
    gpu_target = _triton_name("triton.backends.compiler", "GPUTarget")
    kind, _, arch = target.partition(":")
    if kind == "cuda" and arch.isdigit():
        return gpu_target("cuda", int(arch), 32)
    if kind == "hip" and arch.startswith("gfx"):
        # Processors of the gfx9 line run 64 lanes in step, all later ones 32.
        return gpu_target("hip", arch, 64 if arch.startswith("gfx9") else 32)
    raise CannotRunError(f"no such target: {target} (cuda:90 and hip:gfx942 are examples)")


def _triton_name(module: str, name: str) -> Any:
    """A name of Triton's, or CannotRunError saying that this release of it has no such thing."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise CannotRunError(f"this triton no longer has {module}.{name}: {error}") from error
