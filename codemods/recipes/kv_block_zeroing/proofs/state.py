"""The real warm-up zeroes the null block, where there is one, and leaves all else as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from codemods.prove import process_settings
from codemods.prove.job import CannotRunError
from codemods.prove.proof import Proof, failed, passed
from codemods.prove.proof_process import serve
from codemods.prove.random_states import moved, random_states
from codemods.prove.standins import RunnerStandIn
from codemods.prove.triton_binder import Launch, observed
from codemods.recipes.kv_block_zeroing.proofs.caches import CACHES, Cache, Engine, build, runner
from codemods.recipes.kv_block_zeroing.proofs.job import Job
from codemods.recipes.kv_block_zeroing.proofs.loading import Loaded, loaded

NAME = "state"
GROWN = 8200  # more ids than the zeroer's buffers hold at first


class LaunchFailedError(RuntimeError):
    """What a launch raises when the proof wants it to."""


@dataclass
class Launches:
    """Counts launches; each raises while `fail` is set."""

    count: int = 0
    fail: bool = False

    def __call__(self, _: Launch) -> None:
        self.count += 1
        if self.fail:
            raise LaunchFailedError("the launch fails, as the proof asked")


@dataclass(frozen=True)
class Situation:
    """What the warm-up finds: `make` gives the runner, `launches` says whether it may launch."""

    description: str
    make: Callable[[str, Engine, Launches], RunnerStandIn]
    launches: bool = False
    segments: bool = True


def _after_requests(attribute: str, engine: Engine, _: Launches) -> RunnerStandIn:
    engine.zeroer.zero_block_ids([3, 1])
    return runner(attribute, engine)


def _grown(attribute: str, engine: Engine, launches: Launches) -> RunnerStandIn:
    """A request, which runs in inference mode, has made the zeroer's buffers grow."""
    import torch

    launches.fail = True
    # As of 0.26 this waits for the device; the launch, which fails here, is all it would wait for.
    with (
        suppress(LaunchFailedError),
        torch.inference_mode(),
        patch("torch.accelerator.synchronize"),
    ):
        engine.zeroer.zero_block_ids([2] * GROWN)
    launches.fail = False
    return runner(attribute, engine)


SITUATIONS = (
    Situation("an idle engine", lambda name, engine, _: runner(name, engine), launches=True),
    Situation("requests before", _after_requests, launches=True),
    Situation("buffers that have grown", _grown, launches=True),
    Situation("no layer to zero", lambda name, engine, _: runner(name, engine), segments=False),
    Situation("no KV blocks", lambda name, engine, _: runner(name, engine, num_blocks=0)),
    Situation("None in the zeroer's place", lambda name, *_: RunnerStandIn(**{name: None})),
    Situation("no zeroer", lambda *_: RunnerStandIn()),
)


@dataclass(frozen=True)
class Snapshot:
    """All that must survive: the caches' bytes, the zeroer, the process's random states, settings.

    `tensors` and `values` are the zeroer's attributes.
    """

    memory: list[Any]
    tensors: dict[str, tuple[int, Any]] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    random: tuple[object, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)


def prove(job: Job) -> Proof:
    if not job.after.warm:
        raise CannotRunError("the tree does not have this tool's warm-up")
    figures: dict[str, int | float | str] = {"runs": 0, "launches": 0}
    with loaded(job.after) as tree:
        for attribute in job.attributes:
            for cache in (replace(cache, device=job.device) for cache in CACHES[:4]):
                for situation in SITUATIONS:
                    for fail in (False, True):
                        launches = Launches()
                        with observed(launches):
                            changed = _run(tree, cache, attribute, situation, launches, fail=fail)
                        figures["runs"] = int(figures["runs"]) + 1
                        figures["launches"] = int(figures["launches"]) + launches.count
                        if changed is not None:
                            when = ", the launch raising" if fail else ""
                            where = f"with {situation.description}{when}"
                            return failed(
                                NAME, f"{where}, the warm-up {changed} ({cache})", **figures
                            )
    return passed(
        NAME,
        "the null block is zeroed where there is one, and the caches, the zeroer, the random state "
        "and torch's settings are otherwise as before, also when the launch raises",
        **figures,
    )


def _run(
    tree: Loaded,
    cache: Cache,
    attribute: str,
    situation: Situation,
    launches: Launches,
    *,
    fail: bool,
) -> str | None:
    """Run the warm-up once; what it changed that it may not, None for nothing."""
    engine = build(tree, cache, segments=situation.segments)
    given = situation.make(attribute, engine, launches)
    before = _snapshot(engine)
    launches.count, launches.fail = 0, fail
    assert tree.warmup is not None
    with suppress(LaunchFailedError):
        tree.warmup(given)
    if launches.count != situation.launches:
        return f"launches {launches.count} kernels and not {int(situation.launches)}"
    zeroed = [0] if situation.launches and not fail else []
    expected = replace(before, memory=engine.with_zeroed(before.memory, zeroed))
    return next(_differences(expected, _snapshot(engine)), None)


def _snapshot(engine: Engine) -> Snapshot:
    import torch

    snapshot = Snapshot(
        engine.memory(),
        random=random_states(torch.device(engine.cache.device)),
        settings=process_settings.process_settings(),
    )
    for name, value in _flattened(vars(engine.zeroer)):
        if isinstance(value, torch.Tensor):
            snapshot.tensors[name] = (value.data_ptr(), value.cpu().numpy().copy())
        else:
            snapshot.values[name] = value
    return snapshot


def _flattened(attributes: dict[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in attributes.items():
        if isinstance(value, (list, tuple)):
            yield from _flattened({f"{name}[{i}]": one for i, one in enumerate(value)})
        else:
            yield name, value


def _differences(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """What a run changed, each as the end of a sentence.

    A buffer of ids may hold the null block's in its first place. Where the buffers take turns, as
    of 0.26, it may be the next one's turn.
    """
    for layer, (old, new) in enumerate(zip(before.memory, after.memory, strict=True)):
        if old.tobytes() != new.tobytes():
            yield f"changes {int((old != new).sum())} elements of layer {layer} that it may not"
    for name, (pointer, content) in before.tensors.items():
        now, values = after.tensors.get(name, (0, content))
        if now != pointer:
            yield f"replaces the zeroer's {name}"
        if (content[1:] != values[1:]).any() or (content[:1] != values[:1] and values[0] != 0):
            yield f"changes the zeroer's {name}"
    turns = before.values.get("max_concurrency", 1)
    for name, value in before.values.items():
        new_value = after.values.get(name)
        next_turn = isinstance(value, int) and isinstance(turns, int) and (value + 1) % turns
        if new_value != value and not (name.endswith("_index") and new_value == next_turn):
            yield f"changes the zeroer's {name} from {value} to {new_value}"
    yield from moved(before.random, after.random)
    yield from process_settings.changed(before.settings, after.settings)


if __name__ == "__main__":
    serve(NAME, Job.from_json, prove)
