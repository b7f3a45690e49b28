"""The kv-block-zeroing recipe: compiles what zeroes KV blocks before the first request."""

from __future__ import annotations

from codemods.engine.plan import About, Outcome, Reason, Status, Verdict
from codemods.engine.recipe import Recipe, Run
from codemods.recipes.kv_block_zeroing.edits import unit_tests, warmup
from codemods.recipes.kv_block_zeroing.facts import runners, upstream, zeroer
from codemods.recipes.kv_block_zeroing.facts.names import CLASS, KERNEL, PARAMETER, UTILS
from codemods.recipes.kv_block_zeroing.facts.zeroer import Zeroer
from codemods.recipes.warm_up import edit_names as edits
from codemods.recipes.warm_up import kernel_edit, unit_tests_edit, warmup_edit, worker_edit
from codemods.transforms import names


def decide(run: Run) -> None:
    """Decide the four edits, from the kernel that KVBlockZeroer.zero_block_ids launches."""
    sources = run.sources
    found = zeroer.read(sources)
    if found is None:
        run.why = "No request launches a Triton kernel to zero KV cache blocks."
        name = sources.checkout.name(UTILS) if sources.read(UTILS) else None
        run.every_edit(Status.NOT_NEEDED, Reason.NO_KERNEL, run.why, name)
        return
    held = runners.attributes(sources)
    warm = upstream.warms_up(sources, found, held.values())
    superseded = _superseded(found, warm)
    if superseded is not None:
        run.why = superseded
        _remove_leftovers(run, found)
        return
    kernel_edit.decide(run, found.kernels, PARAMETER, found.unresolved)
    with run.edit(edits.WARMUP, sources.checkout.name(warmup_edit.MODULE)):
        _warmup(run, found, held, warm)
    if warm:
        run.add(_done_upstream(edits.WORKER, found))
    else:
        worker_edit.decide(run, warmup.CALL)
    with run.edit(edits.UNIT_TESTS, unit_tests_edit.EXPECTED):
        _unit_tests(run, found, list(held.values()), warm)
    run.why = _why(run, found, warm)


def _remove_leftovers(run: Run, found: Zeroer) -> None:
    # Only a tree that upstream has fixed needs these.
    from codemods.recipes.kv_block_zeroing.facts.past_texts import PAST
    from codemods.recipes.warm_up.removal import remove_leftovers

    reason = Reason.SUPERSEDED_UPSTREAM
    remove_leftovers(run, PAST, reason, found.file.name, found.kernels[0])


def _superseded(found: Zeroer, warm: bool) -> str | None:
    """Why upstream has fixed the tree, None where it has not."""
    if not any(kernel_edit.takes(one, PARAMETER) for one in found.kernels):
        if upstream.has_warmup(found):
            return f"The kernel takes no {PARAMETER}, and {CLASS}.warmup compiles it (as of 0.28)."
    elif warm:
        edited = kernel_edit.edit(found.kernels, PARAMETER).values()
        if all(one.outcome.status is Status.PRESENT for one in edited):
            return f"{CLASS}.warmup, which the worker's warm-up calls, compiles the kernel."
    return None


def _warmup(run: Run, found: Zeroer, held: dict[str, str], warm: bool) -> None:
    sources = run.sources
    if warm:
        run.add(_done_upstream(edits.WARMUP, found))
        return
    file = sources.read(warmup_edit.MODULE)
    if file is None or warmup_edit.present(file, warmup.FUNCTION) is None:
        zeroer.check_call(found)
        for relative in held:
            runners.check_config(sources, relative)
    name = sources.checkout.name(warmup_edit.MODULE)
    run.take(warmup.edit(name, file, list(held.values())), file)


def _done_upstream(edit: str, found: Zeroer) -> Outcome:
    return Outcome(
        edit,
        Status.PRESENT,
        Reason.ALREADY_PRESENT,
        f"the worker's warm-up calls {CLASS}.warmup",
        found.owner.own.file.name,
    )


def _unit_tests(run: Run, found: Zeroer, attributes: list[str], warm: bool) -> None:
    sources = run.sources
    file = unit_tests_edit.find(sources)
    one = found.kernels[0]
    # A test imports the kernel by its name; one in a class has none to import.
    named = run.in_force(edits.KERNEL) and names.functions(one.file.module, one.name)
    ours = not warm and _is_ours(run, attributes)
    edited = unit_tests.edit(
        file,
        unit_tests_edit.package_name(file, sources.checkout) if file is not None else "",
        (unit_tests_edit.module_name(sources.checkout, one.file.name), one.name) if named else None,
        attributes if ours else (),
    )
    run.take(edited, file)


def _is_ours(run: Run, attributes: list[str]) -> bool:
    """Whether the warm-up is the one that the tests are for."""
    if not run.is_present(edits.WARMUP):
        return run.in_force(edits.WARMUP)
    file = run.sources.read(warmup_edit.MODULE)
    text = warmup.function_text(attributes)
    return file is not None and warmup_edit.has_text(file, warmup.FUNCTION, [text])


def _why(run: Run, found: Zeroer, warm: bool) -> str:
    """Why this very tree needs the recipe or does not."""
    if not run.changes():
        return "The kernel that zeroes KV cache blocks is compiled before the first request."
    if warm:
        return (
            f"{CLASS}.warmup compiles the kernel for one class of {PARAMETER}. Requests that name "
            "another number of blocks to zero wait for a compile of their own."
        )
    start, whose = "No warm-up zeroes KV cache blocks.", "hybrid models"
    for helper, types in upstream.helpers(run.sources):
        start = f"Of the warm-ups only {helper} zeroes KV cache blocks."
        if types:
            start += f" It does so only for {', '.join(types)}."
            whose = "other hybrid models"
    return (
        f"{start} So {found.kernels[0].name} is compiled while the first requests to {whose} "
        f"(attention beside Mamba) wait, once for each class of {PARAMETER}."
    )


RECIPE = Recipe(
    name="kv-block-zeroing",
    about=About(
        title="KV block zeroing warm-up",
        subject="Warm up the kernel that zeroes KV cache blocks before the first request",
        origin="https://github.com/vllm-project/vllm/issues/43009",
    ),
    edits=edits.REPORTED,
    writes=edits.WRITTEN,
    means={
        Reason.SUPERSEDED_UPSTREAM: Verdict.SUPERSEDED,
        Reason.REMOVED: Verdict.SUPERSEDED,
        Reason.NO_KERNEL: Verdict.NOT_AFFECTED,
    },
    reads=(
        r"(?:\w+/)*jit_monitor\.py",
        r"model_executor/warmup/\w+\.py",
        r"triton_utils/\w+\.py",
        r"v1/worker/\w+\.py",
        r"v1/worker/gpu/(?:__init__|model_runner|warmup)\.py",
    ),
    reads_tests=(
        r"tests/(?:v1/(?:worker/)?)?(?:__init__|conftest)\.py",
        r"tests/v1/worker/test_gpu_model_runner\.py",
    ),
    decide=decide,
    kernels={KERNEL: PARAMETER},
)
