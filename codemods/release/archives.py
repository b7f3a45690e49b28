"""The wanted files out of a release's archive, each checked, nothing written.

The index is trusted, over HTTPS. An sdist is checked against the SHA-256 that the index gives. A
wheel is not read whole: each file is checked against the wheel's RECORD (the packaging
specification "Recording installed projects"). The RECORD itself is protected by HTTPS alone.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .index import TIMEOUT, Archive, plain
from .names import ReleaseError, Source, wanted

if TYPE_CHECKING:
    import requests

# One request covers the wheel's central directory and RECORD: 0.7 MB at 0.33.0.
_TAIL = 1 << 20
# The largest wanted file is 0.4 MB; an archive that declares more is not vLLM's.
_LARGEST = 8 << 20
# All wanted files together have 3 MB.
_LARGEST_SUM = 64 << 20
# The sdist of 0.33.0 has 38 MB, and 30 MB more once it is unpacked.
_LARGEST_ARCHIVE = 512 << 20
_LARGEST_UNPACKED = 4 << 30
_CHUNK = 1 << 16


def read(session: requests.Session, archive: Archive) -> dict[str, bytes]:
    """Each wanted file's bytes under its name in the tree (POSIX). Raises `ReleaseError`."""
    from urllib3.exceptions import HTTPError

    take = _from_wheel if archive.source is Source.WHEEL else _from_sdist
    try:
        files = take(session, archive)
    # requests' own errors are OSErrors; urllib3's, raised while a body is read, are not.
    except (OSError, HTTPError) as error:
        raise _broken(archive, error) from error
    if not any(name.startswith("vllm/") for name in files):
        raise ReleaseError(f"{archive.filename} holds no vllm package")
    return files


def _from_wheel(session: requests.Session, archive: Archive) -> dict[str, bytes]:
    from remotezip import RangeNotSupported, RemoteZip, RemoteZipError

    try:
        with RemoteZip(
            archive.url, initial_buffer_size=_TAIL, session=session, timeout=TIMEOUT
        ) as wheel:
            members = [
                member for member in wheel.infolist() if wanted(member.filename, archive.source)
            ]
            _check_sizes(archive, {member.filename: member.file_size for member in members})
            # In the archive's own order, which is the cheapest to read.
            members.sort(key=lambda member: member.header_offset)
            files = {member.filename: wheel.read(member) for member in members}
    except RangeNotSupported as error:
        raise ReleaseError(
            f"the server of {archive.filename} does not answer range requests, and the whole "
            "wheel is not downloaded; unpack it yourself and name that folder"
        ) from error
    except (
        RemoteZipError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        ValueError,
    ) as error:
        raise _broken(archive, error) from error
    _check_record(archive, files)
    return files


def _check_record(archive: Archive, files: dict[str, bytes]) -> None:
    record = [name for name in files if name.endswith(".dist-info/RECORD")]
    if len(record) != 1:
        raise ReleaseError(f"{archive.filename} holds {len(record)} RECORD files, not one")
    rows = csv.reader(files[record[0]].decode("utf-8", "replace").splitlines())
    try:
        digests = {row[0]: row[1] for row in rows if len(row) > 1}
    except csv.Error as error:
        raise _broken(archive, error) from error
    lost = [name for name in digests if wanted(name, archive.source) and name not in files]
    if lost:
        raise ReleaseError(f"{archive.filename} lacks {lost[0]}, which its RECORD lists")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        if name != record[0] and digests.get(name) != f"sha256={digest}":
            raise ReleaseError(
                f"{name} of {archive.filename} does not have the SHA-256 that its RECORD gives"
            )


def _from_sdist(session: requests.Session, archive: Archive) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as scratch:
        path = Path(scratch) / "sdist.tar.gz"
        download(session, archive, path)
        try:
            return _unpack(archive, path)
        except (tarfile.TarError, zlib.error, EOFError) as error:
            raise _broken(archive, error) from error


def download(session: requests.Session, archive: Archive, path: Path) -> None:
    """The whole archive as `path`, held against the index's SHA-256. Raises `ReleaseError`."""
    if archive.sha256 is None:
        raise ReleaseError(f"the package index gives no SHA-256 for {archive.filename}")
    digest = hashlib.sha256()
    with session.get(archive.url, stream=True, timeout=TIMEOUT) as answer, path.open("wb") as file:
        answer.raise_for_status()
        for chunk in answer.iter_content(_CHUNK):
            digest.update(chunk)
            if file.tell() + len(chunk) > _LARGEST_ARCHIVE:
                raise _too_large(archive.filename, f"more than {_LARGEST_ARCHIVE >> 20} MiB")
            file.write(chunk)
    if digest.hexdigest() != archive.sha256:
        raise ReleaseError(f"{archive.filename} does not have the SHA-256 that the index gives")


def _unpack(archive: Archive, path: Path) -> dict[str, bytes]:
    top = archive.filename.removesuffix(".tar.gz") + "/"
    files: dict[str, bytes] = {}
    unpacked = 0
    with tarfile.open(path, "r:gz") as sdist:
        for member in sdist:
            unpacked += member.size + tarfile.BLOCKSIZE
            if unpacked > _LARGEST_UNPACKED:
                raise _too_large(archive.filename, f"more than {_LARGEST_UNPACKED >> 30} GiB")
            name = member.name.removeprefix(top)
            # A link is never followed, whatever it is called.
            if not member.isreg() or name == member.name or not wanted(name, archive.source):
                continue
            sizes = {kept: len(content) for kept, content in files.items()}
            _check_sizes(archive, {**sizes, name: member.size})
            content = sdist.extractfile(member)
            if content is not None:
                files[name] = content.read()
    return files


def _check_sizes(archive: Archive, sizes: Mapping[str, int]) -> None:
    """Refuse before anything is read: what an archive declares is the most that it gives."""
    for name, size in sizes.items():
        if size > _LARGEST:
            raise _too_large(f"{name} of {archive.filename}", f"{size} bytes")
    if sum(sizes.values()) > _LARGEST_SUM:
        raise _too_large(
            f"what is read of {archive.filename}", f"{sum(sizes.values())} bytes in all"
        )


def _too_large(what: str, size: str) -> ReleaseError:
    return ReleaseError(f"{what} is too large: {size}")


def _broken(archive: Archive, error: Exception) -> ReleaseError:
    why = plain(error) or type(error).__name__
    return ReleaseError(f"cannot read {archive.filename}: {why}")
