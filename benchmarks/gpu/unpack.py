"""Put pieces that bundle.py made together again on the GPU machine.

    python benchmarks/gpu/unpack.py PIECES ROOT SET [SET ...]

PIECES holds SET.tar.zst.NN and the zstandard wheel. ROOT gets site/ (bytecode too) and trees/.
A set that is unpacked leaves ROOT/SET.done and is not unpacked again; one that a process of this
script is unpacking is waited for, and unpacked again where that process was ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DECOMPRESS = """
import shutil, sys, zstandard
reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(sys.stdin.buffer)
shutil.copyfileobj(reader, sys.stdout.buffer, 1 << 20)
"""
PATIENCE_S = 200


def unpack(pieces: Path, root: Path, name: str) -> str:
    done, begun = root / f"{name}.done", root / f"{name}.begun"
    started = time.monotonic()
    while not done.exists() and is_alive(begun) and time.monotonic() - started < PATIENCE_S:
        time.sleep(0.2)
    if done.exists():
        return f"{name} was unpacked by another in {time.monotonic() - started:.0f} s from now"
    begun.write_text(str(os.getpid()))
    parts = sorted(pieces.glob(f"{name}.tar.zst.[0-9][0-9]"))
    with subprocess.Popen(["cat", *map(str, parts)], stdout=subprocess.PIPE) as whole:
        reader = subprocess.Popen(
            [sys.executable, "-c", DECOMPRESS], stdin=whole.stdout, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(root / "tool")},
        )  # fmt: skip
        code = subprocess.call(["tar", "-x", "-f", "-", "-C", str(root)], stdin=reader.stdout)
        if reader.wait() or code:
            return f"{name} FAILED: tar {code}, zstd {reader.returncode}, {len(parts)} pieces"
    if name in ("site", "later"):
        compile_site(root / "site")
    done.touch()
    return f"{name} unpacked from {len(parts)} pieces in {time.monotonic() - started:.0f} s"


def is_alive(begun: Path) -> bool:
    """Whether the process that wrote its number there still runs."""
    try:
        os.kill(int(begun.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def compile_site(site: Path) -> None:
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", str(site)]
    subprocess.run(command, check=False, capture_output=True)


def unpacker(pieces: Path, root: Path) -> None:
    if (root / "tool").exists():
        return
    (wheel,) = pieces.glob("zstandard-*.whl")
    new = root / f"tool.{os.getpid()}"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(new)
    try:
        new.rename(root / "tool")
    except OSError:  # another process was first
        shutil.rmtree(new)


def main() -> int:
    pieces, root, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    root.mkdir(parents=True, exist_ok=True)
    unpacker(pieces, root)
    with ThreadPoolExecutor(len(names)) as pool:
        lines = list(pool.map(lambda name: unpack(pieces, root, name), names))
    print("\n".join(lines), flush=True)
    return 1 if any("FAILED" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
