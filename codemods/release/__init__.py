"""A vLLM release's own sources, read from the package index: only the files the tool looks at.

Out of a wheel of some 300 MB this reads about half a megabyte by HTTP range, checks every file
against the wheel's own RECORD, and keeps them in a cache outside the repository, so that a second
call needs no network. Network libraries are imported only when the cache has no answer.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import cache
from .names import ReleaseError, Source, UnreachableError

__all__ = ["ReleaseError", "UnreachableError", "fetch", "newest", "versions"]

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)((?:a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", re.IGNORECASE)
_NUMBERS = 3  # vLLM numbers its releases X.Y.Z


def fetch(version: str, into: Path | None = None, *, sdist: bool = False) -> Path:
    """The folder that holds `vllm/` of a release, checked and cached.

    `version` is what the index calls it ("0.21.0"; "v0.21.0" and "0.21" are understood), `into`
    the cache folder in place of the default. The wheel gives the package and its dist-info; with
    `sdist` the source archive (some 40 MB) gives pyproject.toml and tests too. Raises
    `ReleaseError`.
    """
    number = _canonical(version)
    source = Source.SDIST if sdist else Source.WHEEL
    slot = cache.slot(into, number, source)
    cached = cache.load(slot)
    if cached is not None:
        return cached
    from . import archives, index

    with index.connect() as client:
        archive = index.find(client, number, source)
        return cache.store(slot, archives.read(client.s, archive), archive.filename)


def versions() -> tuple[str, ...]:
    """Every final release on the index that was not withdrawn, oldest first."""
    from . import index

    with index.connect() as client:
        return index.releases(client)


def newest() -> str:
    """The newest final release on the index."""
    return versions()[-1]


def _canonical(version: str) -> str:
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ReleaseError(f"{version!r} is not a release number; give one such as 0.21.0")
    numbers = match[1].split(".")
    numbers += ["0"] * (_NUMBERS - len(numbers))
    return ".".join(numbers) + "".join(part.lower() for part in match.groups("")[1:])
