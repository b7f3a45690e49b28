"""A tree, the patches that the command makes of it, and what it means that one was applied."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from codemods.release import UnreachableError, fetch

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURE = REPOSITORY / "fixtures/forks/base"
PAGES = ("docs/packaging.md", "docs/rebasing.md")
VERSION = "0.21.0"
PATCH = f"warm-up-slot-mapping-{VERSION}.patch"
EPOCH = "1779264000"
FORMS = ("unified", "git", "dep3")
MAILBOXES = ("git", "dep3")
# What a consumer says when a patch does not fit to the byte.
COMPLAINT = re.compile(
    r"with fuzz|\(offset|whitespace|Stripping|malformed|garbage|CRLF"
    r"|warning(?!: extracting unsigned source package)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Case:
    """A tree as it is before, the files that `apply` changes, and the patch in each form."""

    name: str
    root: Path
    changes: dict[str, bytes]
    patches: dict[str, bytes]

    @property
    def version(self) -> str:
        return VERSION if self.name in ("small", "crlf") else self.name

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.root, to)
        return to

    def copy_fixed(self, to: Path) -> Path:
        self.copy(to)
        for path, after in self.changes.items():
            (to / path).write_bytes(after)
        return to

    def assert_fixed(self, tree: Path) -> None:
        """Every file is as apply writes it or as it was, and nothing was left lying about."""
        self._assert_holds(tree, self.changes)
        strays = [path for path in tree.rglob("*") if path.suffix in (".orig", ".rej")]
        assert not [path for path in strays if ".pc" not in path.parts]

    def assert_untouched(self, tree: Path) -> None:
        self._assert_holds(tree, {})

    def assert_packaged(self, folder: Path) -> None:
        """A built package's files, below `folder`, are as apply writes them."""
        for path in self.root.rglob("*"):
            if path.is_file():
                name = path.relative_to(self.root).as_posix()
                wanted = self.changes.get(name, path.read_bytes())
                assert (folder / name).read_bytes() == wanted, name

    def _assert_holds(self, tree: Path, after: dict[str, bytes]) -> None:
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                name = path.relative_to(self.root).as_posix()
                assert (tree / name).read_bytes() == after.get(name, path.read_bytes()), name
                mode = (tree / name).stat().st_mode & 0o111
                assert mode == path.stat().st_mode & 0o111, f"mode of {name}"


def made(name: str, root: Path, folder: Path) -> Case:
    """The case of a tree, as the command itself answers; uses names in `folder`."""
    fixed = Path(shutil.copytree(root, folder / "fixed"))
    tool("apply", str(fixed))
    changes = {
        path.relative_to(root).as_posix(): (fixed / path.relative_to(root)).read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.read_bytes() != (fixed / path.relative_to(root)).read_bytes()
    }
    assert len(changes) > 1, f"{name} should be fixable"
    author = ("--author", "Ada Example <ada@example.org>", "--date", EPOCH)
    patches = {form: tool("diff", str(root), "--format", form, *author) for form in FORMS}
    return Case(name, root, changes, patches)


def fixture_tree(root: Path) -> Path:
    """The fixture fork with an executable, a form feed, and a file without a last newline."""
    shutil.copytree(FIXTURE, root)
    worker = root / "vllm/v1/worker"
    (worker / "gpu_worker.py").chmod(0o755)
    table = worker / "block_table.py"
    table.write_bytes(table.read_bytes().replace(b"\n\n\n@triton", b"\n\n\x0c\n@triton"))
    assert b"\x0c" in table.read_bytes()
    warmup = worker / "gpu/warmup.py"
    warmup.write_bytes(warmup.read_bytes().rstrip(b"\n"))
    return root


def crlf_tree(root: Path) -> Path:
    """The same with CRLF line ends throughout."""
    fixture_tree(root)
    for path in root.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return root


def release(version: str, to: Path) -> Path:
    """A copy of a release's package; skips only where the package index cannot be reached."""
    try:
        found = fetch(version)
    except UnreachableError as error:
        pytest.skip(f"the release {version} cannot be read: {error}")
    shutil.copytree(found / "vllm", to / "vllm")
    for path in to.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to


@dataclass(frozen=True)
class Ran:
    """A command's end: exit status, and both streams as text."""

    status: int
    output: str


def run(command: str | list[str], cwd: Path, **variables: str) -> Ran:
    """Run a command, a string by `sh -e`, with no terminal and none of the user's settings."""
    arguments = ["sh", "-ec", command] if isinstance(command, str) else command
    ended = subprocess.run(
        arguments,
        cwd=cwd,
        env=environment(cwd) | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # no terminal: GNU patch would ask on /dev/tty
        check=False,
    )
    return Ran(ended.returncode, ended.stdout.decode("utf-8", "replace"))


def run_well(command: str | list[str], cwd: Path, **variables: str) -> str:
    """Run a command that must succeed and must not complain; gives what it printed."""
    ran = run(command, cwd, **variables)
    assert ran.status == 0, f"{command}: exit {ran.status}\n{ran.output}"
    assert not COMPLAINT.search(ran.output), ran.output
    return ran.output


def environment(home: Path) -> dict[str, str]:
    """The command and its Python are first on the PATH."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "SOURCE_DATE_EPOCH": EPOCH,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Packager",
        "GIT_AUTHOR_EMAIL": "packager@example.org",
        "GIT_COMMITTER_NAME": "Packager",
        "GIT_COMMITTER_EMAIL": "packager@example.org",
    }


def tool(*arguments: str) -> bytes:
    """What the command prints on stdout; it must succeed."""
    ended = subprocess.run(
        ["vllm-codemods", *arguments], env=environment(Path()), capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout


def script(name: str, folder: Path, *arguments: str) -> Ran:
    """Run an example that is a whole script, in `folder`, from a file elsewhere."""
    file = folder.parent / f"{name}.sh"
    file.write_text(example(name), encoding="utf-8")
    file.chmod(0o755)
    return run([str(file), *arguments], folder)


def update_patch(folder: Path, tree: Path, version: str) -> Ran:
    """Run the page's `update-patch` for a release that is unpacked in `folder`."""
    shutil.copytree(tree, folder / f"vllm-{version}")
    try:
        return script("update-patch", folder, version)
    finally:
        shutil.rmtree(folder / f"vllm-{version}")


def tarball(tree: Path, folder: Path, name: str) -> Path:
    """The tree as a source archive `name`.tar.gz that unpacks to `name`/."""
    archive = folder / f"{name}.tar.gz"
    run_well(
        ["tar", "-czf", str(archive), "--transform", f"s,^\\.,{name},", "-C", str(tree), "."],
        folder,
    )
    return archive


def commit_all(tree: Path) -> None:
    """Make `tree` a repository of one commit."""
    run_well("git init -q && git add -f . && git commit -qm base", tree)


def contents(tree: Path) -> dict[str, bytes]:
    return {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }


def pages() -> str:
    return "".join((REPOSITORY / page).read_text(encoding="utf-8") for page in PAGES)


def example(name: str) -> str:
    """The block of the pages that has this name."""
    found = re.search(rf"<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```\n", pages(), re.S)
    assert found is not None, f"no page has an example {name!r}"
    return found[1]


def need(*tools: str) -> None:
    """Skip, and say why, where a tool is not installed."""
    for each in tools:
        if shutil.which(each, path=environment(Path())["PATH"]) is None:
            pytest.skip(f"{each} is not installed")
