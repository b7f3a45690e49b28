"""The hashes that an installed package keeps of its own files: `*.dist-info/RECORD`.

Format: https://packaging.python.org/en/latest/specifications/recording-installed-packages/.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import posixpath
from collections.abc import Iterator

from codemods.engine.checkout import UsageError
from codemods.engine.files import Disk, UnreadableFile
from codemods.engine.hunks import split_lines
from codemods.engine.plan import FileChange, Plan

_LAST = 1_000  # the rank of a RECORD: behind every file that it lists


def with_record(plan: Plan) -> tuple[FileChange, ...]:
    """The plan's changes, and each RECORD that lists its files brought up to date.

    It covers the files that the plan changes and those in which it found an edit already, so a tree
    that was fixed without its RECORD can be completed. Raises `UsageError` when the tree is the
    package folder itself or holds no RECORD that lists such a file.
    """
    root = plan.tree.root
    files = Disk(root)
    if plan.tree.package == ".":
        raise UsageError(
            f"--update-record needs the folder that holds {root.resolve().name}: "
            f"name {root.resolve().parent}"
        )
    site = posixpath.dirname(plan.tree.package) or "."
    try:
        contents = _relative_to(site, _contents(plan, files))
        records = [record for record in _records(files, site) if _listed(record[1], contents)]
    except UnreadableFile as error:
        raise UsageError(f"--update-record cannot read {error}") from None
    if contents and not records:
        raise UsageError(f"{root / site} has no .dist-info/RECORD that lists vLLM's files")
    changes = [
        FileChange(name, before, after, (), _LAST)
        for name, before in records
        if before != (after := updated(before, contents))
    ]
    return (*plan.changes, *changes)


def updated(record: bytes, contents: dict[str, bytes]) -> bytes:
    """RECORD with the hash and size of each file in `contents`; every other byte is kept.

    `contents` maps a path as RECORD writes it to the file's bytes.
    """
    return b"".join(_updated_row(line, contents) for line in split_lines(record))


def _updated_row(line: bytes, contents: dict[str, bytes]) -> bytes:
    name = _name(line)
    if name not in contents:
        return line
    data = contents[name]
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    body = line.rstrip(b"\r\n")
    # The path keeps its own quotes; the two fields behind it hold no comma.
    path, _, _ = body.rsplit(b",", 2)
    return b"%b,sha256=%b,%d" % (path, digest, len(data)) + line[len(body) :]


def _name(line: bytes) -> str | None:
    """The path in a row of three fields; None for any other line."""
    try:
        rows = list(csv.reader([line.decode("utf-8", "surrogateescape").rstrip("\r\n")]))
    except csv.Error:  # a NUL byte, a field that is no path for its length
        return None
    return rows[0][0] if rows and len(rows[0]) == 3 else None


def _listed(record: bytes, contents: dict[str, bytes]) -> bool:
    return any(_name(line) in contents for line in split_lines(record))


def _records(files: Disk, site: str) -> Iterator[tuple[str, bytes]]:
    """Each RECORD of a site-packages folder, by its name relative to the root."""
    for entry in files.names(site):
        if entry.endswith(".dist-info"):
            name = posixpath.normpath(f"{site}/{entry}/RECORD")
            data = files.read(name)
            if data is not None:
                yield name, data


def _contents(plan: Plan, files: Disk) -> dict[str, bytes]:
    """Path relative to the root -> the bytes a file will have, for each file the plan speaks of."""
    named = {outcome.file for outcome in plan.outcomes if outcome.file is not None}
    on_disk = {path: data for path in sorted(named) if (data := files.read(path)) is not None}
    return on_disk | {change.path: change.after for change in plan.changes}


def _relative_to(site: str, contents: dict[str, bytes]) -> dict[str, bytes]:
    """The same with paths as RECORD writes them, relative to the folder of the `.dist-info`."""
    if site == ".":
        return contents
    start = f"{site}/"
    return {
        path.removeprefix(start): data for path, data in contents.items() if path.startswith(start)
    }
