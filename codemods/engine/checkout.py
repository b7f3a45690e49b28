"""Finds the vLLM package in a folder and reads its files; nobody else reads the tree.

Files are read as bytes and never imported or run.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from codemods.engine.plan import Tree

WORKER = "v1/worker/gpu_worker.py"
RUNNER = "v1/worker/gpu_model_runner.py"
MAX_FOLDERS = 50_000
MAX_BYTES = 8 << 20
_VERSION = re.compile(
    rb"^(?:__version__\s*=\s*)?(?:version|__version__)\s*=\s*['\"]([^'\"]+)", re.M
)


class UsageError(Exception):
    """What the user named cannot be worked on; the message is one clear line. Exit code 2."""


class AmbiguousPackage(Exception):
    """Several packages qualify; `packages` are their paths, POSIX and relative to the root."""

    def __init__(self, packages: list[str]) -> None:
        self.packages = packages
        shown = ", ".join(packages[:6])
        more = f" and {len(packages) - 6} more" if len(packages) > 6 else ""
        super().__init__(f"several packages qualify: {shown}{more}; choose one with --package")


class UnreadableFile(Exception):
    """A file is there but cannot be read as one."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


@dataclass(frozen=True)
class Checkout:
    """A vLLM package in a tree.

    `root` is the folder the user named, `package` the package's folder relative to it (POSIX, "."
    when the root is the package). The `relative` paths of the methods start at the package.
    `overlay` has bytes, by name relative to the root, that are read in the place of a file's.
    """

    root: Path
    package: str
    overlay: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def find(cls, root: Path, package: str | None = None) -> Checkout:
        """Find the package below `root`, or take the one at `package`.

        Raises UsageError where there is none, AmbiguousPackage where there are several.
        """
        if not root.is_dir():
            raise UsageError(f"{root}: {'not a folder' if root.exists() else 'no such folder'}")
        if package is not None:
            wanted = (root / package).resolve()
            if not wanted.is_relative_to(root.resolve()):
                raise UsageError(f"{package}: not inside {root}")
            if not (wanted / WORKER).exists():
                raise UsageError(f"{package}: no vLLM package (it has no {WORKER})")
            return cls(root, wanted.relative_to(root.resolve()).as_posix())
        found = _packages(root)
        if not found:
            raise UsageError(f"{root}: holds no vLLM package (a folder with {WORKER})")
        if len(found) > 1:
            raise AmbiguousPackage(found)
        return cls(root, found[0])

    @property
    def package_name(self) -> str:
        """The name under which the package is imported."""
        return (self.root.resolve() / self.package).resolve().name

    def path(self, relative: str) -> Path:
        return self.root / self.package / relative

    def name(self, relative: str) -> str:
        """The same file relative to the root, POSIX, as outcomes and changes name it."""
        return Path(os.path.normpath(Path(self.package, relative))).as_posix()

    def overlaid(self, files: Mapping[str, bytes]) -> Checkout:
        """The same checkout as it reads once these files are rewritten; nothing is written."""
        return replace(self, overlay={**self.overlay, **files}) if files else self

    def read(self, relative: str) -> bytes | None:
        """The bytes of a file of the package, None where there is no such file."""
        return self.read_named(self.name(relative))

    def read_named(self, name: str) -> bytes | None:
        """The same by a name relative to the root.

        Links are followed only inside the tree. Raises UnreadableFile for a folder, a device, a
        link that leads out of the tree or in a circle, and for want of permission.
        """
        if name in self.overlay:
            return self.overlay[name]
        path = self.root / name
        try:
            if not path.resolve(strict=True).is_relative_to(self.root.resolve()):
                raise UnreadableFile(name, "a link that leads out of the tree")
            # O_NONBLOCK: a FIFO must not hold the tool up before it is known to be one.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                raise UnreadableFile(name, "a link that leads nowhere") from None
            return None
        except RuntimeError:  # Path.resolve on a circle of links, before Python 3.13
            raise UnreadableFile(name, "a link that leads in a circle") from None
        except OSError as error:
            raise UnreadableFile(name, error.strerror or str(error)) from None
        try:
            return _content(descriptor)
        except OSError as error:
            raise UnreadableFile(name, error.strerror or str(error)) from None
        except _NotAFile as reason:
            raise UnreadableFile(name, str(reason)) from None
        finally:
            os.close(descriptor)

    def mode(self, name: str) -> str:
        """git's mode for a file, "100755" when its owner may run it; `name` as in `read_named`."""
        try:
            executable = (self.root / name).stat().st_mode & stat.S_IXUSR
        except OSError:
            return "100644"
        return "100755" if executable else "100644"

    def python_files(self, relative: str) -> Iterator[str]:
        """The `.py` files right in a folder of the package, sorted; none where it is no folder."""
        try:
            entries = sorted(os.listdir(self.path(relative)))
        except OSError:
            return
        yield from (f"{relative}/{entry}" for entry in entries if entry.endswith(".py"))

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.root, self.package, self._version(), self._commit())

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
        for entry in sorted(os.listdir(self.path(".."))):
            if entry.startswith(prefix) and entry.endswith(".dist-info"):
                return entry[len(prefix) : -len(".dist-info")]
        return None

    def _commit(self) -> str | None:
        if not (self.root / ".git").exists():
            return None
        import subprocess

        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        try:
            done = subprocess.run(
                ["git", "-C", str(self.root), "rev-parse", "--verify", "-q", "HEAD"],
                env=environment,
                capture_output=True,
                timeout=10,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("ascii", "replace").strip() or None


class _NotAFile(Exception):
    pass


def _content(descriptor: int) -> bytes:
    """What an open file holds; raises _NotAFile for what is none, which open() alone lets pass."""
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise _NotAFile("a folder stands where a file should be")
    if not stat.S_ISREG(status.st_mode):
        raise _NotAFile("not a regular file")
    if status.st_size > MAX_BYTES:
        raise _NotAFile(f"larger than {MAX_BYTES >> 20} MiB")
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read()


def _packages(root: Path) -> list[str]:
    """Where packages stand: the root, else its own folders, else anywhere below it."""
    if _qualifies(root):
        return ["."]
    whole: list[str] = []
    partial: list[str] = []
    near = [entry for entry in _folders(root) if _qualifies(entry)]
    found = near or _packages_below(root)
    for folder in found:
        name = folder.relative_to(root).as_posix()
        (whole if (folder / RUNNER).exists() else partial).append(name)
    # A plugin may bring a worker of its own; vLLM's has its model runner beside it.
    return whole or partial


def _packages_below(root: Path) -> list[Path]:
    found = []
    pending = list(reversed(_folders(root)))
    seen = 0
    while pending:
        folder = pending.pop()
        seen += 1
        if seen > MAX_FOLDERS:
            raise UsageError(
                f"{root}: more than {MAX_FOLDERS} folders; name the one that holds vLLM"
            )
        if _qualifies(folder):
            found.append(folder)
        else:
            pending.extend(reversed(_folders(folder)))
    return found


def _qualifies(folder: Path) -> bool:
    return os.path.lexists(folder / WORKER)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                Path(entry.path)
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
