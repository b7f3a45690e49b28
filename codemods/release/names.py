"""What the tool wants of a release, by name, and the error all of this folder raises."""

from __future__ import annotations

import re
from enum import Enum


class ReleaseError(Exception):
    """A release's sources cannot be had; the message is one clear line."""


class UnreachableError(ReleaseError):
    """There is no network, or no package index at its other end."""


class Source(str, Enum):
    """Which of a release's archives is read."""

    WHEEL = "wheel"
    SDIST = "sdist"


# Names are matched whole and component by component. No pattern admits "..", a drive, a leading
# slash or a backslash, so that nothing an archive holds can be written outside its folder.
_PACKAGE = r"""
    vllm/(?:
        __init__\.py
      | _version\.py
      | (?:\w+/)*jit_monitor\.py
      | model_executor/warmup/\w+\.py
      | triton_utils/\w+\.py
      | utils/(?:__init__|math_utils)\.py
      | v1/utils\.py
      | v1/attention/backends/utils\.py
      | v1/worker/\w+\.py
      | v1/worker/gpu/(?:__init__|block_table|warmup)\.py
    )
"""
_WHEEL = rf"{_PACKAGE} | vllm-[\w.]+\.dist-info/(?:METADATA|RECORD)"
_SDIST = rf"""{_PACKAGE}
    | pyproject\.toml
    | PKG-INFO
    | tests/(?:v1/(?:worker/)?)?(?:__init__|conftest)\.py
    | tests/v1/worker/test_gpu_model_runner\.py
"""
PATTERNS = {Source.WHEEL: _WHEEL, Source.SDIST: _SDIST}


def wanted(name: str, source: Source) -> bool:
    """Whether the tool reads the file of that name; POSIX, relative to the archive's root."""
    return re.fullmatch(PATTERNS[source], name, re.VERBOSE | re.ASCII) is not None
