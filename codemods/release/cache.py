"""The cache of releases: written in one rename, checked file by file whenever it is read.

A release lies in `VERSION-SOURCE-DIGEST/tree/`, beside a SHA256SUMS that `sha256sum -c` also
takes. DIGEST is of the wanted names: a tool that wants more files reads again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from codemods.engine.files import read_file

from .names import ReleaseError, Source, pattern

_SUMS = "SHA256SUMS"
_TREE = "tree"


def slot(into: Path | None, version: str, source: Source) -> Path:
    """Where a release lies, or would lie."""
    digest = hashlib.sha256(pattern(source).encode()).hexdigest()[:8]
    return (into or _default()) / f"{version}-{source.value}-{digest}"


def load(folder: Path) -> Path | None:
    """The tree of a cached release, or None when it is not there or not as it was stored."""
    try:
        lines = read_file(folder / _SUMS).decode("utf-8").splitlines()
        for line in lines:
            digest, _, name = line.partition("  ")
            if hashlib.sha256(read_file(folder / name)).hexdigest() != digest:
                return None
    except (OSError, ValueError):
        return None
    return folder / _TREE if lines else None


def store(folder: Path, files: Mapping[str, bytes], archive: str) -> Path:
    """Keep `files` (POSIX name, content) as `folder`, all or none; the tree's path.

    `archive` is the file they came from, for the record. Raises `ReleaseError`.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=folder.parent) as scratch:
            fresh = Path(scratch) / "fresh"
            _fill(fresh, files, archive)
            _place(fresh, folder, Path(scratch) / "stale")
    except OSError as error:
        raise ReleaseError(
            f"cannot keep the release in {folder.parent}: {error.strerror or error}; "
            "name another folder in VLLM_CODEMODS_CACHE"
        ) from error
    return folder / _TREE


def _fill(folder: Path, files: Mapping[str, bytes], archive: str) -> None:
    sums = []
    for name, content in sorted(files.items()):
        path = folder / _TREE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {_TREE}/{name}\n")
    (folder / "ARCHIVE").write_text(f"{archive}\n", "utf-8")
    (folder / _SUMS).write_text("".join(sums), "utf-8")


def _place(fresh: Path, folder: Path, stale: Path) -> None:
    # What is there already is broken, or another process's result of the same moment.
    if folder.exists() and load(folder) is None:
        folder.rename(stale)
    try:
        fresh.rename(folder)
    except OSError:
        if load(folder) is None:
            raise


def _default() -> Path:
    named = os.environ.get("VLLM_CODEMODS_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        # The XDG specification says that a relative path here is to be ignored.
        home = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError as error:
        raise ReleaseError(
            "there is no home folder to keep releases in; name one in VLLM_CODEMODS_CACHE"
        ) from error
    return home / "vllm-codemods"
