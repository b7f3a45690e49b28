"""The package index: which releases of vLLM there are, and which archive of one to read."""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .names import ReleaseError, Source, UnreachableError

if TYPE_CHECKING:
    import requests
    from packaging.version import Version
    from pypi_simple import DistributionPackage, PyPISimple

TIMEOUT = (15.0, 60.0)  # seconds: to connect, and between two reads

_PROJECT = "vllm"
_LARGEST_PAGE = 32 << 20  # bytes; vLLM's page has 0.3 MB
# pip's and uv's own names for the index to use in place of the default one.
_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
# The Python files are the same in each; x86_64 is what most people run.
_MACHINES = ("x86_64", "aarch64")


@dataclass(frozen=True)
class Archive:
    """One file of one release on the index; `sha256` (hex) is None where the index has none."""

    source: Source
    filename: str
    url: str
    sha256: str | None


@contextmanager
def connect() -> Iterator[PyPISimple]:
    """A client of the index that the environment names, else of the default one."""
    try:
        import remotezip  # noqa: F401
        from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple
    except ModuleNotFoundError as error:
        raise ReleaseError(
            f"reading a release needs {error.name}: pip install 'vllm-codemods[release]'"
        ) from error
    named = next(filter(None, map(os.environ.get, _VARIABLES)), PYPI_SIMPLE_ENDPOINT)
    # uv writes an index as NAME=URL too.
    with PyPISimple(re.sub(r"^[\w.-]+=(?=\w+:)", "", named.strip())) as client:
        client.s.hooks["response"].append(_bounded)
        yield client


def _bounded(answer: requests.Response, *, stream: bool = False, **_: object) -> None:
    """Read a page within a limit, before requests reads it without one."""
    if stream or answer.is_redirect:
        return
    parts = []
    size = 0
    for part in answer.iter_content(1 << 16):
        parts.append(part)
        size += len(part)
        if size > _LARGEST_PAGE:
            answer.close()
            raise ReleaseError(f"{plain(answer.url)} answers with more than an index page")
    answer._content = b"".join(parts)


def releases(client: PyPISimple) -> tuple[str, ...]:
    """Final releases that were not withdrawn, oldest first."""
    found = {
        version: package.version
        for version, package in _packages(client)
        if package.version and not version.is_prerelease and not package.is_yanked
    }
    if not found:
        raise ReleaseError(f"the package index at {plain(client.endpoint)} has no vllm release")
    return tuple(found[version] for version in sorted(found))


def find(client: PyPISimple, number: str, source: Source) -> Archive:
    """The archive of release `number` to read. Raises `ReleaseError`."""
    from packaging.version import Version

    asked = Version(number)
    packages = _packages(client)
    release = [package for version, package in packages if version == asked]
    if not release:
        raise ReleaseError(_unknown(number, asked, {version for version, _ in packages}))
    fitting = [package for package in release if package.package_type == source.value]
    if not fitting:
        raise ReleaseError(f"vllm {number} has no {source.value} on the package index")
    best = min(fitting, key=_preference)
    return Archive(source, best.filename, best.url, best.digests.get("sha256"))


def plain(text: object) -> str:
    """Text fit for a message: one line, and no password in an address."""
    return re.sub(r"//[^/@\s]*@", "//", " ".join(str(text).split()))


def _packages(client: PyPISimple) -> list[tuple[Version, DistributionPackage]]:
    from packaging.version import InvalidVersion, Version
    from pypi_simple import NoSuchProjectError, UnsupportedRepoVersionError
    from requests.exceptions import SSLError

    where = f"the package index at {plain(client.endpoint)}"
    try:
        page = client.get_project_page(_PROJECT, timeout=TIMEOUT)
    except NoSuchProjectError as error:
        raise ReleaseError(f"{where} has no vllm") from error
    # In this order: requests' errors are OSErrors, and some are ValueErrors as well.
    except OSError as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, SSLError):
            raise ReleaseError(
                f"{where} is not trusted: its certificate is signed by nobody known here; "
                "name your CA file in REQUESTS_CA_BUNDLE"
            ) from error
        if status:
            raise ReleaseError(f"{where} answers with an error: {status}") from error
        why = type(error).__name__
        raise UnreachableError(f"cannot read {where}: {why}; is there a network?") from error
    except (ValueError, UnsupportedRepoVersionError) as error:
        raise ReleaseError(f"{where} does not answer as an index: {plain(error)}") from error
    found = []
    for package in page.packages:
        try:
            found.append((Version(package.version or ""), package))
        except InvalidVersion:
            continue
    return found


def _preference(package: DistributionPackage) -> tuple[int, int, str]:
    """Sorts the archive to read first: the machine, then the newest build."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    name = package.filename
    tags = [f"manylinux{machine}" for machine in _MACHINES]
    fits = [re.search(rf"-manylinux\w*_{machine}(?:\.|$)", name) for machine in _MACHINES]
    machine = next((rank for rank, fit in enumerate(fits) if fit), len(tags))
    try:
        build = parse_wheel_filename(name)[2]
    except InvalidWheelFilename:
        build = ()
    return machine, -(build[0] if build else 0), name


def _unknown(number: str, asked: Version, known: set[Version]) -> str:
    ordered = sorted(known)
    at = bisect.bisect(ordered, asked)
    nearest = ", ".join(str(version) for version in ordered[max(0, at - 2) : at + 2])
    return f"there is no vllm {number} on the package index" + (
        f"; the nearest are {nearest}" if nearest else ""
    )
