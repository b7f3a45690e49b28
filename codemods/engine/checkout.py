"""Finds the vLLM package in a tree and reads its files as bytes; none is imported or run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from keyword import iskeyword
from pathlib import Path

from codemods.engine.files import Disk, Files, UnreadableFile
from codemods.engine.plan import Tree
from codemods.engine.repository import head_commit, is_bare

__all__ = ["AmbiguousPackage", "Checkout", "NoPackage", "UnreadableFile", "UsageError"]

WORKER = "v1/worker/gpu_worker.py"
RUNNER = "v1/worker/gpu_model_runner.py"
MAX_FOLDERS = 50_000
_VERSION = re.compile(
    rb"^(?:__version__\s*=\s*)?(?:version|__version__)\s*=\s*['\"]([^'\"]+)", re.M
)
# An import that a module of the package makes of another one.
_OWN_IMPORT = re.compile(rb"^[ \t]*(?:from|import) (\w+(?:\.\w+)*?)\.v1\b", re.M | re.A)


def is_module_name(name: str) -> bool:
    """Whether Python can import a module by that name; it may have dots."""
    return all(part.isidentifier() and not iskeyword(part) for part in name.split("."))


class UsageError(Exception):
    """What the user named cannot be worked on; the message is one clear line. Exit code 2."""


class NoPackage(UsageError):
    """A folder holds no vLLM package."""


class AmbiguousPackage(Exception):
    """Several packages qualify; `packages` are their paths, POSIX and relative to the root."""

    def __init__(self, packages: list[str]) -> None:
        self.packages = packages
        shown = ", ".join(packages[:6])
        more = f" and {len(packages) - 6} more" if len(packages) > 6 else ""
        super().__init__(f"several packages qualify: {shown}{more}; choose one with --package")


@dataclass(frozen=True)
class Checkout:
    """A vLLM package in a tree.

    `root` is the folder the user named, `package` the package's folder relative to it (POSIX, "."
    when the root is the package). The `relative` paths of the methods start at the package.
    `overlay` has bytes, by name relative to the root, that are read in the place of a file's.
    `source` is where the files are, None for the disk; `ref` and `commit` name them where they
    are a commit's.
    """

    root: Path
    package: str
    overlay: Mapping[str, bytes] = field(default_factory=dict)
    source: Files | None = None
    ref: str | None = None
    commit: str | None = None

    @classmethod
    def find(cls, root: Path, package: str | None = None) -> Checkout:
        """Find the package below `root`, or take the one at `package`.

        Raises NoPackage where there is none, AmbiguousPackage where there are several.
        """
        if not root.is_dir():
            raise UsageError(f"{root}: {'not a folder' if root.exists() else 'no such folder'}")
        try:
            return cls.find_in(Disk(root), root, package, named=f"{root}: ")
        except NoPackage as error:
            hint = "; it is a bare repository, whose commits --ref reads" if is_bare(root) else ""
            raise NoPackage(f"{error}{hint}") from None

    @classmethod
    def find_in(
        cls, files: Files, root: Path, package: str | None = None, *, named: str = ""
    ) -> Checkout:
        """The same in files that need not be on the disk; messages begin with `named`."""
        if package is not None:
            wanted = files.real_folder(package)
            if wanted is None:
                raise UsageError(f"{package}: not inside the tree")
            if not _qualifies(files, wanted):
                raise UsageError(f"{package}: no vLLM package (it has no {WORKER})")
            return cls(root, wanted, source=files)
        found = _packages(files, named)
        if not found:
            raise NoPackage(f"{named}holds no vLLM package (a folder with {WORKER})")
        if len(found) > 1:
            raise AmbiguousPackage(found)
        return cls(root, found[0], source=files)

    @cached_property
    def files(self) -> Files:
        return self.source or Disk(self.root)

    @cached_property
    def package_name(self) -> str:
        """The name under which the package is imported.

        It is the folder's, but for a folder of which Python cannot take the name, or which has
        another as a link to it: there it is the name that the worker imports the package by.
        """
        folder = self.files.folder_name(self.package)
        own = self._imported_as()
        if own in (None, folder):
            return folder
        linked = self.files.real_folder(self.name(f"../{own}")) == self.package
        return str(own) if linked or not is_module_name(folder) else folder

    def _imported_as(self) -> str | None:
        """The package's name in the worker's own imports of `NAME.v1`."""
        try:
            found = _OWN_IMPORT.search(self.read(WORKER) or b"")
        except UnreadableFile:
            return None
        return found[1].decode() if found else None

    def name(self, relative: str) -> str:
        """The same file relative to the root, POSIX, as outcomes and changes name it."""
        return posixpath.normpath(posixpath.join(self.package, relative))

    def overlaid(self, files: Mapping[str, bytes]) -> Checkout:
        """The same checkout as it reads once these files are rewritten; nothing is written."""
        if not files:
            return self
        return replace(self, overlay={**self.overlay, **files}, source=self.files)

    def read(self, relative: str) -> bytes | None:
        """The bytes of a file of the package, None where there is no such file.

        Raises UnreadableFile.
        """
        return self.read_named(self.name(relative))

    def read_named(self, name: str) -> bytes | None:
        """The same by a name relative to the root."""
        return self.overlay[name] if name in self.overlay else self.files.read(name)

    def mode(self, name: str) -> str:
        """git's mode for a file, "100755" when its owner may run it; `name` as in `read_named`."""
        return self.files.mode(name)

    def left_out(self, relative: str) -> bool:
        """Whether a file that is not there is one that a sparse checkout leaves out."""
        return self.files.left_out(self.name(relative))

    def python_files(self, relative: str) -> Iterator[str]:
        """The `.py` files right in a folder of the package, sorted; none where it is no folder."""
        entries = self.files.names(self.name(relative))
        yield from (f"{relative}/{entry}" for entry in entries if entry.endswith(".py"))

    @cached_property
    def tree(self) -> Tree:
        commit = self.commit if self.ref else head_commit(self.root)
        return Tree(self.root, self.package, self._version(), commit, self.ref)

    def _version(self) -> str | None:
        for name, pattern in (
            ("_version.py", _VERSION),
            ("../PKG-INFO", re.compile(rb"^Version: (\S+)", re.M)),
        ):
            if name.startswith("..") and self.package == ".":
                continue
            try:
                found = pattern.search(self.read(name) or b"")
            except UnreadableFile:
                continue
            if found:
                return found.group(1).decode("ascii", "replace")
        return self._installed_version()

    def _installed_version(self) -> str | None:
        if self.package == ".":
            return None
        prefix = f"{self.package_name}-"
        for entry in self.files.names(self.name("..")):
            if entry.startswith(prefix) and entry.endswith(".dist-info"):
                return entry[len(prefix) : -len(".dist-info")]
        return None


def _packages(files: Files, named: str) -> list[str]:
    """Where packages are: the root, else its own folders, else anywhere below it."""
    if _qualifies(files, "."):
        return ["."]
    near = [name for name in files.folders(".") if _qualifies(files, name)]
    found = near or _packages_below(files, named)
    # A plugin may bring a worker of its own; vLLM's has its model runner beside it.
    whole = [name for name in found if files.exists(f"{name}/{RUNNER}")]
    return whole or found


def _packages_below(files: Files, named: str) -> list[str]:
    found = []
    pending = list(reversed(files.folders(".")))
    seen = 0
    while pending:
        folder = pending.pop()
        seen += 1
        if seen > MAX_FOLDERS:
            raise UsageError(
                f"{named}more than {MAX_FOLDERS} folders; name the one that holds vLLM"
            )
        if _qualifies(files, folder):
            found.append(folder)
        else:
            pending.extend(f"{folder}/{name}" for name in reversed(files.folders(folder)))
    return found


def _qualifies(files: Files, folder: str) -> bool:
    return files.exists(f"{folder}/{WORKER}")
