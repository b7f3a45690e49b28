"""The hashes that an installed package keeps of its own files: `*.dist-info/RECORD`.

Format: https://packaging.python.org/en/latest/specifications/recording-installed-packages/.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from pathlib import Path

from codemods.engine.checkout import UsageError
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
    if plan.tree.package == ".":
        raise UsageError(
            f"--update-record needs the folder that holds {root.resolve().name}: "
            f"name {root.resolve().parent}"
        )
    site = (root / plan.tree.package).parent
    contents = _contents(plan)
    records = [
        path
        for path in sorted(site.glob("*.dist-info/RECORD"))
        if _listed(path.read_bytes(), _relative_to(site, root, contents))
    ]
    if contents and not records:
        raise UsageError(f"{site} has no .dist-info/RECORD that lists vLLM's files")
    changes = [
        FileChange(path.relative_to(root).as_posix(), before, after, (), _LAST)
        for path in records
        if (before := path.read_bytes())
        != (after := updated(before, _relative_to(site, root, contents)))
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
    rows = list(csv.reader([line.decode("utf-8", "surrogateescape").rstrip("\r\n")]))
    return rows[0][0] if rows and len(rows[0]) == 3 else None


def _listed(record: bytes, contents: dict[str, bytes]) -> bool:
    return any(_name(line) in contents for line in split_lines(record))


def _contents(plan: Plan) -> dict[str, bytes]:
    """Path relative to the root -> the bytes a file will have, for each file the plan speaks of."""
    named = {outcome.file for outcome in plan.outcomes if outcome.file is not None}
    on_disk = {
        path: (plan.tree.root / path).read_bytes()
        for path in sorted(named)
        if (plan.tree.root / path).is_file()
    }
    return on_disk | {change.path: change.after for change in plan.changes}


def _relative_to(site: Path, root: Path, contents: dict[str, bytes]) -> dict[str, bytes]:
    """The same with paths as RECORD writes them, relative to the folder of the `.dist-info`."""
    return {
        (root / path).relative_to(site).as_posix(): data
        for path, data in contents.items()
        if (root / path).is_relative_to(site)
    }
