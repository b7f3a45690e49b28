"""The `warmup` edit: appends `warmup_kv_block_zeroing_kernel` to the worker's warm-up module.

With "n_blocks" unspecialised, what still decides the kernel's compile key is fixed once the zeroer
is made (segments, page size, alignment), so one call on the runner's own zeroer covers every
request. In inference mode, as requests are: buffers that a request made grow cannot be written to
outside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from codemods.engine.sources import Edited, SourceFile
from codemods.recipes.warm_up import warmup_edit
from codemods.recipes.warm_up.worker_edit import Call

FUNCTION = "warmup_kv_block_zeroing_kernel"
CALL = Call(FUNCTION, "the KV block zeroing kernel", v1_only=False)

_HEAD = f'''@torch.inference_mode()
def {FUNCTION}(model_runner: Any) -> None:
    """Compile the KV block zeroing kernel on the runner's own zeroer.

    The scheduler names blocks to zero for real requests alone, so no dummy run gets
    there. Block 0 is the null block: no request depends on what it holds, so the call
    is safe on a live engine too (elastic EP runs the warm-up again).
    """
'''

_ONE = """\
    # Missing or None where the model needs no zeroed blocks.
    zeroer = getattr(model_runner, "{0}", None)
    if zeroer is not None and model_runner.kv_cache_config.num_blocks > 0:
        zeroer.zero_block_ids([0])
"""

_SEVERAL = """\
    # The V1 and the V2 runner's name for it; missing or None where the model needs no
    # zeroed blocks.
    for name in ({0}):
        zeroer = getattr(model_runner, name, None)
        if zeroer is not None and model_runner.kv_cache_config.num_blocks > 0:
            zeroer.zero_block_ids([0])
"""


def edit(name: str, warmup: SourceFile | None, attributes: Sequence[str]) -> Edited:
    """Add the function to the file `name`; `attributes` hold a runner's zeroer. Raises Refusal."""
    file = warmup_edit.required(warmup, name, FUNCTION)
    there = warmup_edit.present(file, FUNCTION)
    if there is not None:
        return there
    return warmup_edit.add(file, FUNCTION, function_text(attributes), "zeroes the null block")


def function_text(attributes: Sequence[str]) -> str:
    """The function as it is inserted, with four-space indents and LF."""
    names = list(dict.fromkeys(attributes))
    if len(names) == 1:
        return _HEAD + _ONE.format(names[0])
    return _HEAD + _SEVERAL.format(", ".join(f'"{name}"' for name in names))
