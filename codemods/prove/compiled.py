"""A proof's launches compiled for each target, before and after the rewrite; no GPU needed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field

from codemods.prove.proof import Proof, failed, passed, skipped
from codemods.prove.triton_binder import Binary, Binder, Launch


@dataclass
class Results:
    """What came of it: figures, targets a kernel does not compile for, targets Triton cannot do."""

    figures: dict[str, int | float | str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)


def compiled(
    name: str, targets: tuple[str, ...], sides: Iterable[tuple[str, list[Launch]]]
) -> Proof:
    """The row called `name`; `sides` are labelled launches, each used before the next is asked for.

    So a side's modules may be loaded only while its launches are compiled.
    """
    results = Results()
    binders = [binder for target in targets if (binder := _able(target, results)) is not None]
    for label, launches in sides:
        # Kernels that did not change are compiled again too: the figures are of both sides.
        os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
        for binder in binders:
            _compile_all(launches, binder, label, results)
    if results.broken:
        return failed(name, f"does not compile: {'; '.join(results.broken)}", **results.figures)
    if results.lacking:
        lacking = "; ".join(f"{target} ({why})" for target, why in results.lacking.items())
        return skipped(
            name, f"this triton cannot compile anything for {lacking}", **results.figures
        )
    return passed(name, f"every kernel compiles for {', '.join(targets)}", **results.figures)


def _able(target: str, results: Results) -> Binder | None:
    """A binder for the target, if the smallest of kernels compiles for it."""
    import torch

    from codemods.prove.probe import probe

    try:
        binder = Binder(target)
        binder.compile(Launch(probe, (torch.zeros(1, dtype=torch.int32),), {}, (1,)))
    except Exception as error:
        results.lacking[target] = _describe(error)
        return None
    return binder


def _compile_all(launches: list[Launch], binder: Binder, label: str, results: Results) -> None:
    """Compile each key once, and keep the most registers, the largest binary, the time in all."""
    keys = {binder.key(launch): launch for launch in launches}
    binaries: list[Binary] = []
    for launch in keys.values():
        try:
            binaries.append(binder.compile(launch))
        except Exception as error:
            results.broken.append(f"{launch.name} {label} for {binder.target}: {_describe(error)}")
    if not binaries:
        return
    figures = {
        "binaries": len(binaries),
        "registers": max((b.registers for b in binaries if b.registers is not None), default=None),
        "bytes": max(binary.size for binary in binaries),
        "milliseconds": sum(binary.milliseconds for binary in binaries),
    }
    for name, figure in figures.items():
        if figure is not None:
            results.figures[f"{binder.target} {name} {label}"] = figure


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}"
