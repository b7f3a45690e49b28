"""The `unit-tests` edit: tests for `kernel` and `warmup`, where the checkout has vLLM's tests.

They use what the module imports at its top and import the rest themselves, so that they pass in
any fork's copy of it, with and without a GPU. The worker's call has none: to run that method takes
an engine, and a test that reads its source would test the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from codemods.engine.sources import Edited, SourceFile
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from codemods.recipes.kv_block_zeroing.facts.names import PARAMETER
from codemods.recipes.warm_up import unit_tests_edit
from codemods.recipes.warm_up.unit_tests_edit import imports

_KERNEL = f"""def test_kv_block_zeroing_kernel_leaves_{PARAMETER}_unspecialized():
{{imports}}    # Only a JITFunction has parameters: no interpreted one, none without Triton.
    params = {{{{p.name: p for p in getattr({{kernel}}, "params", ())}}}}
    assert not params or params["{PARAMETER}"].do_not_specialize
"""

_ZEROES = f"""def test_kv_block_zeroing_warmup_zeroes_the_null_block():
{{imports}}    for name in ({{names}}):
        zeroed: list[list[int]] = []
        runner = SimpleNamespace(kv_cache_config=SimpleNamespace(num_blocks=2))
        setattr(runner, name, SimpleNamespace(zero_block_ids=zeroed.append))
        {FUNCTION}(runner)
        assert zeroed == [[0]]
"""

_NEEDS = f"""def test_kv_block_zeroing_warmup_needs_a_zeroer_and_kv_blocks():
{{imports}}    for name in ({{names}}):
        {FUNCTION}(SimpleNamespace(**{{{{name: None}}}}))
        runner = SimpleNamespace(kv_cache_config=SimpleNamespace(num_blocks=0))
        {FUNCTION}(runner)
        # A call of this zeroer would raise.
        setattr(runner, name, SimpleNamespace())
        {FUNCTION}(runner)
"""
TEXTS = (_KERNEL, _ZEROES, _NEEDS)


def edit(
    file: SourceFile | None,
    package: str,
    kernel: tuple[str, str] | None,
    attributes: Sequence[str],
) -> Edited:
    """Add the tests to the test module; raises Refusal.

    `package` is the name that the tests import it by; `kernel` is the module and name of what the
    kernel edit covers, `attributes` are the runners' names for a zeroer. Each is empty where its
    edit is not in force: nothing is tested that is not there.
    """
    there = unit_tests_edit.nothing_to_add(file, FUNCTION)
    if there is not None or file is None:
        assert there is not None
        return there
    parts = []
    if kernel is not None:
        module, name = kernel
        needed = imports(file, (), (f"{package}.{module}", [name]))
        parts.append(_KERNEL.format(imports=needed, kernel=name))
    if attributes:
        home = (f"{package}.v1.worker.gpu.warmup", [FUNCTION])
        needed = imports(file, ["SimpleNamespace"], home)
        quoted = [f'"{name}"' for name in dict.fromkeys(attributes)]
        listed = ", ".join(quoted) + "," * (len(quoted) == 1)
        parts += [text.format(imports=needed, names=listed) for text in (_ZEROES, _NEEDS)]
    return unit_tests_edit.add(file, parts)
