"""ruff on the bytes of a tree's file, under the tree's own settings.

The settings are data: their files are copied, within the limits on every file of a tree, into a
temporary folder, and ruff runs there; ruff's settings name no program. Settings count up to the top
of the git checkout that the tree is part of, since vLLM may be inside a bigger repository, and up
to the tree's root elsewhere. Where there are none, ruff's defaults hold.
"""

from __future__ import annotations

import json
import posixpath
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codemods.engine.checkout import Checkout, UnreadableFile
from codemods.engine.files import Disk, Files
from codemods.engine.programs import find_program
from codemods.prove import processes
from codemods.prove.proof import NOT_INSTALLED

SETTINGS = ("ruff.toml", ".ruff.toml", "pyproject.toml")


class UnavailableError(Exception):
    """A tool cannot be used here; the message says why, and how to get it."""


@dataclass(frozen=True)
class Ruff:
    """ruff in a temporary folder with `settings`; `start` leads from it to the tree's root."""

    program: str
    folder: Path
    start: str
    has_settings: bool
    timeout: float

    def is_formatted(self, path: str, source: bytes) -> bool:
        """Whether `ruff format` would leave the file alone."""
        return self._run(path, source, "format", "--check").status == 0

    def complaints(self, path: str, source: bytes) -> Counter[str]:
        """What `ruff check` says, as code and message, without the line."""
        output = self._run(path, source, "check", "--output-format", "json").output
        try:
            return Counter(f"{item['code']} {item['message']}" for item in json.loads(output))
        except (ValueError, KeyError, TypeError):
            raise UnavailableError("ruff does not answer in its JSON format") from None

    def _run(self, path: str, source: bytes, *words: str) -> processes.Ended:
        settings = "--force-exclude" if self.has_settings else "--isolated"
        # ruff looks for settings above the name as it is given, so the name is a whole one.
        name = str(self.folder / self.start / path)
        ended = processes.run(
            [self.program, *words, "--no-cache", settings, "--stdin-filename", name, "-"],
            folder=self.folder,
            environment={"HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
            timeout=self.timeout,
            stdin=source,
        )
        if ended.status is None:
            raise UnavailableError(f"ruff did not end within {self.timeout:g} s")
        if ended.status not in (0, 1):
            raise UnavailableError(
                f"ruff does not take the tree's settings: {first_line(ended.complaints)}"
            )
        return ended


@contextmanager
def ruff_for(checkout: Checkout, paths: Iterable[str], timeout: float) -> Iterator[Ruff]:
    """ruff for these files of the tree, relative to its root. Raises UnavailableError."""
    program = installed("ruff")
    if program is None:
        raise UnavailableError(f"ruff {NOT_INSTALLED}")
    files, start = _home(checkout)
    with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as scratch:
        folder = Path(scratch).resolve()
        has_settings = False
        for name in dict.fromkeys(_candidates(start, paths)):
            data = _setting(files, name)
            if data is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
                has_settings = True
        for path in (*paths, *(f"{name}/x" for name in checkout.files.folders("."))):
            # ruff takes what is a folder here for the tree's own when it sorts imports.
            (folder / start / path).parent.mkdir(parents=True, exist_ok=True)
        yield Ruff(program, folder, start, has_settings, timeout)


def installed(name: str) -> str | None:
    """A program beside this Python, else one of the machine."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.is_file() else find_program(name)


def first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[0][:200] if lines else "it says nothing"


def _home(checkout: Checkout) -> tuple[Files, str]:
    """The files among which settings count, and the tree's root among them."""
    if checkout.ref is not None:
        return checkout.files, "."
    root = checkout.root.resolve()
    top = next((one for one in (root, *root.parents) if (one / ".git").exists()), root)
    return Disk(top), root.relative_to(top).as_posix()


def _candidates(start: str, paths: Iterable[str]) -> Iterator[str]:
    """Where settings of the files may be."""
    for path in paths:
        folder = posixpath.dirname(posixpath.normpath(posixpath.join(start, path)))
        while True:
            yield from (posixpath.join(folder, name) for name in SETTINGS)
            if not folder:
                break
            folder = posixpath.dirname(folder)


def _setting(files: Files, name: str) -> bytes | None:
    """A file with settings of ruff, None where there is none."""
    try:
        data = files.read(name)
    except UnreadableFile as error:
        raise UnavailableError(f"ruff's settings cannot be read: {error}") from None
    if data is None or (name.endswith("pyproject.toml") and b"tool.ruff" not in data):
        return None
    return data
