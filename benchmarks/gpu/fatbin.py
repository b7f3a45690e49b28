"""Blank the GPU code that one machine can never run out of a CUDA shared object.

nvcc puts a kernel's code for every architecture into `.nv_fatbin`: containers that begin with the
magic 0xBA55ED50, each holding entries of kind 1 (PTX) or 2 (cubin) with the architecture at byte
28 of the entry's header. The driver reads only the entry that fits the GPU, so the others' bytes
can be zeros: the file keeps its size and layout, still registers every kernel when it is loaded,
and compresses to a fraction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAGIC = b"\x50\xed\x55\xba"
CUBIN = 2


@dataclass(frozen=True)
class Entry:
    """One architecture's code: `start` and `size` are bytes of the payload in the file."""

    kind: int
    arch: int
    start: int
    size: int


def containers(data: bytes | bytearray) -> Iterator[list[Entry]]:
    """Each fatbin container's entries, in file order."""
    at = 0
    while (at := data.find(MAGIC, at)) >= 0:
        if len(data) - at < 16:
            return
        _, version, header, size = struct.unpack_from("<IHHQ", data, at)
        end = at + header + size
        if version != 1 or header != 16 or end > len(data):
            at += len(MAGIC)
            continue
        entries, here = [], at + header
        while here + 32 <= end:
            kind, _, head, payload = struct.unpack_from("<HHIQ", data, here)
            (arch,) = struct.unpack_from("<I", data, here + 28)
            if head < 32:
                break
            entries.append(Entry(kind, arch, here + head, payload))
            here += head + payload
        yield entries
        at = end


def keep_only(data: bytes, arch: int, wanted: Callable[[bytes], bool] = lambda code: True) -> bytes:
    """`data` with every payload zeroed but the cubins of `arch` whose bytes are `wanted`.

    PTX goes too: in vLLM's wheels it serves only quantised kernels without a cubin of their own.
    """
    kept = bytearray(data)
    for entries in containers(data):
        for entry in entries:
            code = data[entry.start : entry.start + entry.size]
            if entry.kind != CUBIN or entry.arch != arch or not wanted(code):
                kept[entry.start : entry.start + entry.size] = bytes(entry.size)
    return bytes(kept)
