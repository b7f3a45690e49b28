"""The files of a commit, read from a repository's objects: no checkout, no work tree."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field

from codemods.engine.files import MAX_BYTES, MAX_TOTAL, UnreadableFile
from codemods.engine.git import GitFailed
from codemods.engine.objects import Entry, MissingObject, Objects, TooLarge

_MAX_NAME = 4096  # as on a disk
_MAX_LINKS = 40
_NOT_HERE = "its object is not in this repository, as in a partial clone: git fetch brings it"


class _Circle(Exception):
    pass


class _Outside(Exception):
    pass


@dataclass(frozen=True)
class _Found:
    """What a name leads to behind all links."""

    name: str
    entry: Entry


@dataclass
class CommitFiles:
    """A commit's files, as `engine.files.Files`.

    `asked` keeps what was asked and what came of it, file contents as their ids, so that another
    commit for which all of it is the same needs no second look. `repository_name` is the name of a
    package that is the repository's own top folder.
    """

    objects: Objects
    root: str
    repository_name: str
    asked: dict[tuple[str, str], object] = field(default_factory=dict)
    _left: int = MAX_TOTAL

    def read(self, name: str) -> bytes | None:
        found = self._keep("read", name)
        if isinstance(found, str):
            raise UnreadableFile(name, found)
        if found is None:
            return None
        assert isinstance(found, Entry)
        try:
            data = self.objects.blob(found.id)
        except TooLarge:
            raise UnreadableFile(name, f"larger than {MAX_BYTES >> 20} MiB") from None
        except MissingObject:
            raise UnreadableFile(name, _NOT_HERE) from None
        except GitFailed as error:
            raise UnreadableFile(name, str(error)) from None
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile(name, f"more than {MAX_TOTAL >> 20} MiB of the commit were read")
        return data

    def mode(self, name: str) -> str:
        return str(self._keep("mode", name))

    def exists(self, name: str) -> bool:
        return bool(self._keep("exists", name))

    def names(self, folder: str) -> tuple[str, ...]:
        found = self._keep("names", folder)
        assert isinstance(found, tuple)
        return found

    def folders(self, folder: str) -> tuple[str, ...]:
        found = self._keep("folders", folder)
        assert isinstance(found, tuple)
        return found

    def real_folder(self, name: str) -> str | None:
        found = self._keep("real_folder", name)
        return None if found is None else str(found)

    def folder_name(self, name: str) -> str:
        return str(self._keep("folder_name", name))

    def left_out(self, name: str) -> bool:
        return False

    def answers_as(self, other: CommitFiles) -> bool:
        """Whether all that was asked of `other` has the same answer here."""
        try:
            return all(self._answer(kind, name) == was for (kind, name), was in other.asked.items())
        except UnreadableFile:
            return False

    def _keep(self, kind: str, name: str) -> object:
        if (kind, name) not in self.asked:
            self.asked[kind, name] = self._answer(kind, name)
        return self.asked[kind, name]

    def _answer(self, kind: str, name: str) -> object:
        answers: dict[str, Callable[[str], object]] = {
            "read": self._file,
            "mode": self._mode,
            "exists": lambda name: self._at(name) is not None,
            "names": lambda name: tuple(sorted(self._listing(name))),
            "folders": self._folders,
            "real_folder": self._real_folder,
            "folder_name": self._folder_name,
        }
        return answers[kind](name)

    def _file(self, name: str) -> Entry | str | None:
        """A file's entry, None where there is none, or what is wrong with it."""
        try:
            found = self._real(name)
        except _Circle:
            return "a link that leads in a circle"
        except _Outside:
            return "a link that leads out of the tree"
        if found is None:
            return "a link that leads nowhere" if self._at(name) is not None else None
        if found.entry.is_folder:
            return "there is a folder where a file should be"
        return found.entry if found.entry.is_file else "not a regular file"

    def _mode(self, name: str) -> str:
        found = self._file(name)
        executable = isinstance(found, Entry) and int(found.mode, 8) & 0o100
        return "100755" if executable else "100644"

    def _listing(self, name: str) -> dict[str, Entry]:
        try:
            found = self._real(name)
        except (_Circle, _Outside):
            return {}
        if found is None or not found.entry.is_folder:
            return {}
        return self._tree(name, found.entry.id)

    def _folders(self, name: str) -> tuple[str, ...]:
        entries = self._listing(name)
        return tuple(
            sorted(one for one, it in entries.items() if it.is_folder and not one.startswith("."))
        )

    def _real_folder(self, name: str) -> str | None:
        if posixpath.isabs(name):
            return None
        try:
            found = self._real(name)
        except (_Circle, _Outside):
            return None
        return found.name if found else posixpath.normpath(name or ".")

    def _folder_name(self, name: str) -> str:
        real = self._real_folder(name)
        return self.repository_name if real in (None, ".") else posixpath.basename(str(real))

    def _at(self, name: str) -> Entry | None:
        """What is at a name; links are followed on the way to it, not at its end."""
        parent, _, last = posixpath.normpath(name).rpartition("/")
        if last in (".", ".."):
            return Entry("40000", self.root) if last == "." else None
        return self._listing(parent or ".").get(last)

    def _real(self, name: str) -> _Found | None:
        """What a name leads to behind all links, None where to nothing.

        Raises _Circle, _Outside.
        """
        if len(name) > _MAX_NAME:
            return None
        here: list[_Found] = [_Found(".", Entry("40000", self.root))]
        rest = list(reversed(name.split("/")))
        links = 0
        while rest:
            part = rest.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if len(here) == 1:
                    raise _Outside
                here.pop()
                continue
            folder = here[-1]
            entry = self._tree(name, folder.entry.id).get(part) if folder.entry.is_folder else None
            if entry is None:
                return None
            if entry.is_link:
                links += 1
                if links > _MAX_LINKS:
                    raise _Circle
                target = self._target(name, entry)
                if target.startswith("/"):
                    raise _Outside
                rest += reversed(target.split("/"))
                continue
            here.append(_Found(part if len(here) == 1 else f"{folder.name}/{part}", entry))
        return here[-1]

    def _target(self, name: str, link: Entry) -> str:
        try:
            target = os.fsdecode(self.objects.blob(link.id))
        except (MissingObject, TooLarge, GitFailed) as error:
            raise UnreadableFile(name, _why(error)) from None
        if len(target) > _MAX_NAME:
            raise UnreadableFile(name, "a link of more than 4096 characters")
        return target

    def _tree(self, name: str, identity: str) -> dict[str, Entry]:
        try:
            return self.objects.tree(identity)
        except (MissingObject, TooLarge, GitFailed) as error:
            raise UnreadableFile(name, _why(error)) from None


def _why(error: Exception) -> str:
    if isinstance(error, MissingObject):
        return _NOT_HERE
    return "too large" if isinstance(error, TooLarge) else str(error)
