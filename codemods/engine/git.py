"""Runs git, in the one way that is safe on a hostile repository.

git never sees the repository's own configuration. It runs in an empty folder made for it, with a
configuration that this module writes. Of the repository it reads only data: objects, refs, the
index, attributes. So nothing that the configuration could name is run, whatever git's version: no
pager, alias, filter, textconv, fsmonitor, hook, external diff, credential helper or ssh command, no
fetch of a missing object, no included file. The user's own configuration is left out too.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from codemods.engine.programs import find_program, safe_path
from codemods.engine.repository import Repository

TIMEOUT = 4.0  # seconds, for each answer
_MAX_ANSWER = 64 << 20  # bytes; the index of a tree of 100,000 files is listed in a tenth
_NO_HEAD = "ref: refs/heads/none"


class GitFailed(Exception):
    """git is not there, or does not answer as it should; the message is one line."""


class GitSilent(GitFailed):
    """git does not answer in time; it would not the next time either."""


class GitMissing(GitFailed):
    """git is not installed."""


@dataclass(frozen=True)
class Git:
    """git on a repository's data; `folder` is our own, in which it runs."""

    program: str
    repository: Repository
    folder: Path

    def ask(self, *arguments: str, work_tree: Path | None = None) -> bytes:
        """What a command prints. Raises GitFailed."""
        with tempfile.TemporaryFile(dir=self.folder) as complaints:
            process = self.start(*arguments, work_tree=work_tree, stderr=complaints.fileno())
            with stopped(process):
                answer = read_all(process, time.monotonic() + TIMEOUT)
                code = _exit_code(process)
            if code:
                complaints.seek(0)
                raise GitFailed(_first_line(complaints.read(2000)) or f"git exited {code}")
        return answer

    def start(
        self,
        *arguments: str,
        work_tree: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a command that reads and writes pipes. Raises GitFailed."""
        where = work_tree or self.folder / "work"
        try:
            return subprocess.Popen(
                [self.program, *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=where,
                env=self._environment(where),
            )
        except OSError as error:
            raise GitFailed(f"cannot start git: {error.strerror}") from None

    def _environment(self, work_tree: Path) -> dict[str, str]:
        return {
            "PATH": safe_path(),
            "LC_ALL": "C",
            "HOME": str(self.folder),
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": str(work_tree),
            "GIT_OBJECT_DIRECTORY": str(self.repository.common / "objects"),
            "GIT_INDEX_FILE": str(self.repository.folder / "index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",  # what is read is the commit's own object
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",  # a look must not rewrite the index
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOC_LIMIT": "512m",
        }


@contextmanager
def opened(repository: Repository) -> Iterator[Git]:
    """git on a repository. Raises GitFailed, GitMissing."""
    program = find_program("git")
    if program is None:
        raise GitMissing("git is not installed")
    try:
        folder = Path(tempfile.mkdtemp(prefix="vllm-codemods-"))
    except OSError as error:
        raise GitFailed(f"no temporary folder: {error.strerror}") from None
    try:
        try:
            _fill(folder, repository)
        except OSError as error:
            raise GitFailed(f"no temporary folder: {error.strerror}") from None
        yield Git(program, repository, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, repository: Repository) -> None:
    """Make `folder` a git folder that has the repository's data and our configuration."""
    (folder / "work").mkdir()
    for name in ("refs", "packed-refs", "reftable", "info"):
        os.symlink(repository.common / name, folder / name)
    for shared in repository.folder.glob("sharedindex.*"):
        os.symlink(shared, folder / shared.name)
    (folder / "HEAD").write_text(f"{repository.head() or _NO_HEAD}\n", encoding="ascii")
    (folder / "config").write_text(_configuration(repository), encoding="ascii")


def _configuration(repository: Repository) -> str:
    lines = ["[core]", "repositoryformatversion = 1", "bare = false", "bigFileThreshold = 8m"]
    lines += ["[extensions]"]
    hashing = repository.setting("objectformat", ("sha256",))
    refs = repository.setting("refstorage", ("reftable",))
    lines += [f"objectformat = {hashing}"] if hashing else []
    lines += [f"refstorage = {refs}"] if refs else []
    return "\n".join(lines) + "\n"


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the process and close its pipes, however the block ends."""
    try:
        yield
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()


def read_all(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Everything the process prints. Raises GitFailed where it is too much or takes too long."""
    parts: list[bytes] = []
    left = _MAX_ANSWER
    while part := read_some(process, deadline):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise GitFailed("git answers with more than it should")
    return b"".join(parts)


def read_some(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """What the process has printed next, b"" at its end. Raises GitSilent after `deadline`."""
    assert process.stdout is not None
    ready = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
    if not ready:
        raise GitSilent(f"git did not answer within {TIMEOUT:g} s")
    return os.read(process.stdout.fileno(), 1 << 16)


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git did not end within {TIMEOUT:g} s") from None


def _first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else ""
