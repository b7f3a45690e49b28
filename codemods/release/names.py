"""What the tool wants of a release, by name, and the error all of this folder raises."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache

from codemods.engine import registry


class ReleaseError(Exception):
    """A release's sources cannot be had; the message is one clear line."""


class UnreachableError(ReleaseError):
    """There is no network, or no package index at its other end."""


class Source(str, Enum):
    """Which of a release's archives is read."""

    WHEEL = "wheel"
    SDIST = "sdist"


# Whatever a recipe's own pattern admits, nothing that an archive holds is written outside its
# folder: no part of a name is "..", a drive or empty, and no name has a backslash.
_SAFE = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*", re.ASCII)
_PACKAGE = (r"__init__\.py", r"_version\.py")
_WHEEL = (r"vllm-[\w.]+\.dist-info/(?:METADATA|RECORD)",)
_SDIST = (r"pyproject\.toml", "PKG-INFO")


@cache
def pattern(source: Source) -> str:
    """A regular expression for the names of the files that the tool reads: every recipe's."""
    recipes = registry.every()
    package = [*_PACKAGE, *(one for recipe in recipes for one in recipe.reads)]
    names = [f"vllm/(?:{'|'.join(dict.fromkeys(package))})"]
    if source is Source.WHEEL:
        names += _WHEEL
    else:
        names += [*_SDIST, *(one for recipe in recipes for one in recipe.reads_tests)]
    return "|".join(dict.fromkeys(names))


def wanted(name: str, source: Source) -> bool:
    """Whether the tool reads the file of that name; POSIX, relative to the archive's root."""
    return bool(_SAFE.fullmatch(name) and re.fullmatch(pattern(source), name, re.ASCII))
