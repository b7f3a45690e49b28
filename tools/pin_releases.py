"""Refresh the archive names and SHA-256 of fixtures/releases.toml from the package index.

    python tools/pin_releases.py

What is expected of a release is written by hand and never by this script: everything above the
line that begins with MARK stays as it is, and below it a release keeps the expectation it names.
To add a release, append a `[[release]]` table with its version, source and expect, and run this.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from pinned import LIST, Pinned, load

from codemods.release import ReleaseError, fetch
from codemods.release.names import Source

MARK = "# Below this line:"
# What the verdict and the edits rest on; of these, each release's own are pinned.
FILES = (
    "tests/v1/worker/test_gpu_model_runner.py",
    "vllm/model_executor/warmup/kernel_warmup.py",
    "vllm/model_executor/warmup/qwen_triton_warmup.py",
    "vllm/model_executor/warmup/v1_block_table_warmup.py",
    "vllm/triton_utils/jit_monitor.py",
    "vllm/utils/jit_monitor.py",
    "vllm/v1/worker/block_table.py",
    "vllm/v1/worker/gpu/model_runner.py",
    "vllm/v1/worker/gpu/warmup.py",
    "vllm/v1/worker/gpu_model_runner.py",
    "vllm/v1/worker/gpu_worker.py",
    "vllm/v1/worker/utils.py",
)


def main() -> int:
    text = LIST.read_text("utf-8")
    by_hand, mark, rest = text.partition(MARK)
    if not mark:
        print(f"{LIST.name}: no line begins with {MARK!r}", file=sys.stderr)
        return 2
    try:
        tables = [_table(pinned) for pinned in load()]
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    LIST.write_text(by_hand + mark + rest.partition("\n")[0] + "\n\n" + "\n".join(tables), "utf-8")
    return 0


def _table(pinned: Pinned) -> str:
    tree = fetch(pinned.version, sdist=pinned.source is Source.SDIST)
    archive = (tree.parent / "ARCHIVE").read_text("utf-8").strip()
    lines = [
        "[[release]]",
        f'version = "{pinned.version}"',
        f'source = "{pinned.source.value}"',
        f'archive = "{archive}"',
        f'expect = "{pinned.expected.name}"',
        "[release.sha256]",
    ]
    lines += [f'"{name}" = "{_sha256(tree / name)}"' for name in FILES if (tree / name).exists()]
    return "\n".join(lines) + "\n"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
