"""Every text that a version of this tool inserted for the recipe, since 0.2.0.

They are kept apart from the edits: a text that changes there is added here, beside the older one.
A test holds today's texts to these patterns.
"""

from __future__ import annotations

import re

from codemods.recipes.warm_up.removal import Past, pattern

FUNCTION = "warmup_kv_block_zeroing_kernel"

_HEAD = '''@torch.inference_mode()
def warmup_kv_block_zeroing_kernel(model_runner: Any) -> None:
    """Compile the KV block zeroing kernel on the runner's own zeroer.

    The scheduler names blocks to zero for real requests alone, so no dummy run gets
    there. Block 0 is the null block: what it holds is never read, not by live
    requests either (elastic EP runs the warm-up again).
    """
'''

_ONE = """\
    # Missing or None where the model needs no zeroed blocks.
    zeroer = getattr(model_runner, $name, None)
    if zeroer is not None and model_runner.kv_cache_config.num_blocks > 0:
        zeroer.zero_block_ids([0])
"""

_SEVERAL = """\
    # The V1 and the V2 runner's name for it; missing or None where the model needs no
    # zeroed blocks.
    for name in $names:
        zeroer = getattr(model_runner, name, None)
        if zeroer is not None and model_runner.kv_cache_config.num_blocks > 0:
            zeroer.zero_block_ids([0])
"""

_IMPORTED = rf"(?:from \.gpu\.warmup import {FUNCTION}\n\n)?"
_CALL = f"""\
# Compile the KV block zeroing kernel before the first request.
${{imported}}{FUNCTION}($path)
"""

_TESTS = (
    """def test_kv_block_zeroing_kernel_leaves_n_blocks_unspecialized():
$imports    # Only a JITFunction has parameters: no interpreted one, none without Triton.
    params = {p.name: p for p in getattr($path, "params", ())}
    assert not params or params["n_blocks"].do_not_specialize
""",
    """def test_kv_block_zeroing_warmup_zeroes_the_null_block():
$imports    for name in $names:
        zeroed: list[list[int]] = []
        runner = SimpleNamespace(kv_cache_config=SimpleNamespace(num_blocks=2))
        setattr(runner, name, SimpleNamespace(zero_block_ids=zeroed.append))
        warmup_kv_block_zeroing_kernel(runner)
        assert zeroed == [[0]]
""",
    """def test_kv_block_zeroing_warmup_needs_a_zeroer_and_kv_blocks():
$imports    for name in $names:
        warmup_kv_block_zeroing_kernel(SimpleNamespace(**{name: None}))
        runner = SimpleNamespace(kv_cache_config=SimpleNamespace(num_blocks=0))
        warmup_kv_block_zeroing_kernel(runner)
        # A call of this zeroer would raise.
        setattr(runner, name, SimpleNamespace())
        warmup_kv_block_zeroing_kernel(runner)
""",
    # A first cut had this one too.
    """def test_worker_warms_kv_block_zeroing_up_before_the_jit_monitor():
$imports    # A method is indented; a comment that names the monitor does not count.
    source = inspect.getsource($path)
    nodes = ast.walk(ast.parse("if True:\\n" + source))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    lines = [(ast.unparse(call.func), call.lineno) for call in calls]
    warmup = min(n for name, n in lines if name == "warmup_kv_block_zeroing_kernel")
    assert all(warmup < n for name, n in lines if "jit_monitor" in name)
""",
)

_NAME = r"\"\w+\""
_NAMES = r"\([^()]*\)"

PAST = Past(
    FUNCTION,
    warmup=pattern(_HEAD + _ONE, _HEAD + _SEVERAL, name=_NAME, names=_NAMES),
    call=pattern(_CALL, path=r"[\w.]+", imported=_IMPORTED),
    tests=pattern(*_TESTS, names=_NAMES, path=r"[\w.]+"),
    tested=re.compile(
        rb"\b(?:test_kv_block_zeroing_(?:kernel_leaves_n_blocks_unspecialized|warmup_)\w*"
        rb"|test_worker_warms_kv_block_zeroing_up_before_the_jit_monitor)\b"
    ),
)
