"""Small checkouts whose block table launches a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from codemods.engine.sources import Sources
from codemods.recipes.warm_up.launches import Launches, find
from tests.checkouts import checkout

BLOCK_TABLE = "v1/worker/block_table.py"

KERNEL = """
    @triton.jit
    def _slots_kernel(num_tokens, max_num_tokens, SIZE: tl.constexpr):
        pass
    """


def block_table(launch: str, rest: str = KERNEL, members: str = "", head: str = "") -> str:
    """A block table module: `launch` is what compute_slot_mapping does, `rest` comes after it."""
    body = dedent(launch).strip().splitlines()
    more = dedent(members).strip().splitlines()
    lines = [
        *dedent(head).strip().splitlines(),
        "from vllm.triton_utils import tl, triton",
        "",
        "",
        "class BlockTable:",
        *("    " * bool(line) + line for line in more),
        *([""] if more else []),
        "    def compute_slot_mapping(self, num_reqs, query_start_loc, positions):",
        *("        " * bool(line) + line for line in body),
        "",
        "",
        *dedent(rest).strip().splitlines(),
    ]
    return "\n".join(lines) + "\n"


def launches(root: Path, text: str | bytes, files: Mapping[str, str] | None = None) -> Launches:
    sources = Sources(checkout(root, {BLOCK_TABLE: text, **(files or {})}))
    file = sources.read(BLOCK_TABLE)
    assert file is not None
    return find(sources, file, "BlockTable", "compute_slot_mapping")
