"""The trees that everything is tried on: real releases, and trees shaped like forks."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import project
from .git import committed, git

PATCHED_RELEASE = "0.21.0"
# The tree that is shaped like that release among the forks' trees, whose text is not vLLM's.
PATCHED_FORK = "00-monitor-in-triton-utils"
FILES = ("v1/worker/block_table.py", "v1/worker/gpu/warmup.py", "v1/worker/gpu_worker.py")


@dataclass(frozen=True)
class Subject:
    """A tree in a repository of its own; `package` is its package's path (POSIX) in it.

    `in_need`: the tree lacks the fix. `is_release`: it is a release, or is shaped like one.
    """

    name: str
    kind: str
    root: Path
    package: str
    in_need: bool
    is_release: bool

    def lines(self) -> Counter[bytes]:
        """The lines of the files that the fix touches, line ends left out."""
        found: Counter[bytes] = Counter()
        for name in FILES:
            path = self.root / self.package / name
            if path.exists():
                found.update(line.strip() for line in path.read_bytes().splitlines())
        return found


def releases(into: Path) -> list[Subject]:
    settings = project.release_tree(project.SETTINGS_RELEASE, sdist=True) / "pyproject.toml"
    found = []
    for version, verdict in project.releases():
        root = into / version
        shutil.copytree(project.release_tree(version), root)
        shutil.copy(settings, root)
        need = verdict not in project.NOTHING_NEEDED
        found.append(Subject(version, "release", committed(root), "vllm", need, True))
    return found


def forks(into: Path) -> list[Subject]:
    found = []
    for name in project.fork_names():
        root = into / name
        root.mkdir(parents=True)
        package = project.write_fork(name, root)
        (root / "ruff.toml").write_bytes(project.FORK_SETTINGS)
        need = project.fork_expected(name) not in project.NOTHING_NEEDED
        found.append(Subject(name, "fork", committed(root), package, need, name.startswith("00-")))
    return found


@dataclass(frozen=True)
class Patch:
    """A patch, the subject that it was made for, and that subject's files, which it changes."""

    made_for: Subject
    text: bytes

    @staticmethod
    def made(subject: Subject) -> Patch:
        return Patch(subject, project.patch_for(subject.root))

    def aimed_at(self, subject: Subject) -> bytes:
        """The patch with the subject's path of the package in place of its own."""
        own, other = self.made_for.package, subject.package
        lines = self.text.split(b"\n")
        for at, line in enumerate(lines):
            if line.startswith((b"diff --git ", b"--- a/", b"+++ b/")):
                for side in (b"a", b"b"):
                    line = line.replace(
                        b"%s/%s/" % (side, own.encode()), b"%s/%s/" % (side, other.encode())
                    )
                lines[at] = line
        return b"\n".join(lines)

    def give_objects(self, repository: Path) -> None:
        """Put what the patch was made from into a repository, for a three-way merge."""
        root = self.made_for.root / self.made_for.package
        for path in (root / name for name in FILES):
            if path.exists():
                git(
                    repository,
                    "hash-object",
                    "-w",
                    "--no-filters",
                    "--stdin",
                    stdin=path.read_bytes(),
                )


def patches(subjects: Sequence[Subject]) -> dict[str, Patch]:
    """A patch for each release, or tree shaped like one, that needs the fix."""
    return {s.name: Patch.made(s) for s in subjects if s.in_need and s.is_release}


def nearest(made: Mapping[str, Patch], subject: Subject) -> Patch:
    """The patch of another tree that has the fewest lines other than the subject's."""
    own = subject.lines()
    others = [
        patch
        for name, patch in made.items()
        if name != subject.name and patch.made_for.kind == subject.kind
    ]
    return min(others, key=lambda patch: _apart(own, patch.made_for.lines()))


def _apart(one: Counter[bytes], other: Counter[bytes]) -> int:
    return ((one - other) + (other - one)).total()
