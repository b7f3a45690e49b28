"""The `unit-tests` edit: tests for the other edits, where the checkout has vLLM's tests.

They use what the module imports at its top and import the rest themselves, so that they pass in
any fork's copy of it, with and without a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from codemods.engine.sources import Edited, SourceFile
from codemods.recipes.kv_block_zeroing.edits.warmup import FUNCTION
from codemods.recipes.kv_block_zeroing.facts.names import PARAMETER
from codemods.recipes.warm_up import test_module
from codemods.recipes.warm_up.test_module import import_line
from codemods.transforms import names

_KERNEL = f"""def test_kv_block_zeroing_kernel_leaves_{PARAMETER}_unspecialized():
{{imports}}
    # Only a JITFunction has parameters: no interpreted one, none without Triton.
    params = {{{{p.name: p for p in getattr({{kernel}}, "params", ())}}}}
    assert not params or params["{PARAMETER}"].do_not_specialize
"""

_WARMUP = f"""def test_kv_block_zeroing_warmup_zeroes_the_null_block():
{{imports}}
    for name in ({{names}}):
        zeroed: list[list[int]] = []
        runner = SimpleNamespace(kv_cache_config=SimpleNamespace(num_blocks=2))
        setattr(runner, name, SimpleNamespace(zero_block_ids=zeroed.append))
        {FUNCTION}(runner)
        assert zeroed == [[0]]


def test_kv_block_zeroing_warmup_needs_a_zeroer_and_kv_blocks():
{{imports}}
    for name in ({{names}}):
        {FUNCTION}(SimpleNamespace(**{{{{name: None}}}}))
        runner = SimpleNamespace(kv_cache_config=SimpleNamespace(num_blocks=0))
        {FUNCTION}(runner)
        # A call of this zeroer would raise.
        setattr(runner, name, SimpleNamespace())
        {FUNCTION}(runner)
"""

_WORKER = f"""def test_worker_warms_kv_block_zeroing_up_before_the_jit_monitor():
{{imports}}
    # A method is indented; a comment that names the monitor does not count.
    source = inspect.getsource({{worker}})
    nodes = ast.walk(ast.parse("if True:\\n" + source))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    lines = [(ast.unparse(call.func), call.lineno) for call in calls]
    warmup = min(n for name, n in lines if name == "{FUNCTION}")
    assert all(warmup < n for name, n in lines if "jit_monitor" in name)
"""


def edit(
    file: SourceFile | None,
    package: str,
    kernel: tuple[str, str] | None,
    attributes: Sequence[str],
    worker: str | None,
) -> Edited:
    """What becomes of the test module; raises Refusal.

    `package` is the name that the tests import it by; `kernel` is the module and name of what the
    kernel edit covers, `attributes` are the runners' names for a zeroer, `worker` is
    `CLASS.METHOD`. Each is empty where its edit is not in force: no test stands for what is not
    there.
    """
    there = test_module.settled(file, FUNCTION)
    if there is not None or file is None:
        assert there is not None
        return there
    parts = []
    if kernel is not None:
        module, name = kernel
        imports = _imports(file, f"{package}.{module}", name)
        parts.append(_KERNEL.format(imports=imports, kernel=name))
    if attributes:
        imports = _imports(file, f"{package}.v1.worker.gpu.warmup", FUNCTION, "SimpleNamespace")
        quoted = [f'"{name}"' for name in dict.fromkeys(attributes)]
        listed = ", ".join(quoted) + "," * (len(quoted) == 1)
        parts.append(_WARMUP.format(imports=imports, names=listed))
    if worker is not None:
        owner = worker.partition(".")[0]
        imports = _imports(file, f"{package}.v1.worker.gpu_worker", owner, "ast", "inspect")
        parts.append(_WORKER.format(imports=imports, worker=worker))
    return test_module.add(file, parts)


_STANDARD = {
    "SimpleNamespace": "from types import SimpleNamespace",
    "ast": "import ast",
    "inspect": "import inspect",
}


def _imports(file: SourceFile, module: str, name: str, *standard: str) -> str:
    """The imports that a test needs beside the module's own, in isort's order."""
    bound = {one.local for one in names.imports(file.module)}
    first = sorted((_STANDARD[one] for one in standard if one not in bound), key=_isort_key)
    second = [import_line(module, [name])] if name not in bound else []
    sections = ["\n".join(f"    {line}" for line in lines) for lines in (first, second) if lines]
    return "".join(f"{section}\n\n" for section in sections).rstrip("\n") + "\n" * bool(sections)


def _isort_key(line: str) -> bool:
    return line.startswith("from")
