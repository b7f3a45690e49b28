"""Under which names the model runners hold a zeroer. They are searched as text: V1's runner is
300 kB, and parsing it takes longer than everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.kv_block_zeroing.facts.names import CLASS, V1_RUNNER, V2_RUNNER
from codemods.recipes.warm_up.warmup_edit import MODULE, WITHOUT

_HELD = re.compile(
    rb"^[ \t]+self\.(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(?:\w+\.)*%b\(" % CLASS.encode(),
    re.MULTILINE,
)
_MENTIONED = re.compile(rb"\b%b\b" % CLASS.encode())
_CONFIG = re.compile(rb"^[ \t]+self\.kv_cache_config\b[^=\n]*=[^=]", re.MULTILINE)
_NUM_BLOCKS = re.compile(rb"\bkv_cache_config\.num_blocks\b")


def attributes(sources: Sources) -> dict[str, str]:
    """The attribute that holds the zeroer, by the file of the runner that has one."""
    found = {}
    for relative in (V1_RUNNER, V2_RUNNER):
        runner = sources.read(relative)
        name = _attribute(runner) if runner is not None else None
        if name is not None:
            found[relative] = name
    if not found:
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"expected a model runner that keeps a {CLASS} in an attribute, found none",
            sources.checkout.name(V1_RUNNER),
        )
    return found


def _attribute(runner: SourceFile) -> str | None:
    names = {match.decode() for match in _HELD.findall(runner.data)}
    if len(names) > 1:
        raise Refusal(
            Reason.AMBIGUOUS,
            f"the runner keeps a {CLASS} under several names: {', '.join(sorted(names))}",
            runner.name,
        )
    if not names and _MENTIONED.search(runner.data):
        raise Refusal(
            Reason.SIGNATURE_CHANGED,
            f"the runner uses {CLASS}, but the tool found no attribute that keeps one",
            runner.name,
        )
    return next(iter(names), None)


def check_config(sources: Sources, relative: str) -> None:
    """Refuse a runner without the `kv_cache_config.num_blocks` that the function asks for."""
    runner = sources.read(relative)
    assert runner is not None
    if not _CONFIG.search(runner.data) or not any(map(_NUM_BLOCKS.search, _texts(sources))):
        raise Refusal(
            Reason.SIGNATURE_CHANGED,
            "expected the runner to have kv_cache_config.num_blocks, found no such attribute; "
            f"the warm-up has to be written for this tree; {WITHOUT}",
            runner.name,
        )


def _texts(sources: Sources) -> Iterator[bytes]:
    for relative in (V1_RUNNER, V2_RUNNER, MODULE):
        file = sources.read(relative)
        if file is not None:
            yield file.data
