"""The package is found wherever it is, and only files of the tree are read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codemods.engine.checkout import (
    RUNNER,
    WORKER,
    AmbiguousPackage,
    Checkout,
    UnreadableFile,
    UsageError,
)
from codemods.engine.files import MAX_BYTES


def put(root: Path, *names: str, data: bytes = b"x = 1\n") -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def package(root: Path, name: str, *, whole: bool = True) -> Path:
    home = "" if name == "." else f"{name}/"
    return put(root, *(f"{home}{one}" for one in (WORKER, RUNNER)[: 1 + whole]))


@pytest.mark.parametrize(
    "name", [".", "vllm", "acme", "src/vllm", "a/b/c/vllm", "lib/python3.12/site-packages/vllm"]
)
def test_a_package_is_found_wherever_it_is(name: str, tmp_path: Path) -> None:
    assert Checkout.find(package(tmp_path, name)).package == name


def test_a_near_package_is_taken_before_one_deeper_down(tmp_path: Path) -> None:
    package(tmp_path, "vllm")
    package(tmp_path, "third_party/old/vllm")
    assert Checkout.find(tmp_path).package == "vllm"


def test_a_package_with_a_model_runner_is_taken_before_a_plugin(tmp_path: Path) -> None:
    package(tmp_path, "plugin", whole=False)
    package(tmp_path, "vllm")
    assert Checkout.find(tmp_path).package == "vllm"


def test_a_worker_alone_is_a_package_too(tmp_path: Path) -> None:
    assert Checkout.find(package(tmp_path, "vllm", whole=False)).package == "vllm"


def test_several_packages_are_named(tmp_path: Path) -> None:
    for number in range(9):
        package(tmp_path, f"p{number}")
    with pytest.raises(AmbiguousPackage) as caught:
        Checkout.find(tmp_path)
    assert caught.value.packages == [f"p{number}" for number in range(9)]
    assert "p5 and 3 more; choose one with --package" in str(caught.value)


@pytest.mark.parametrize("name", ["p1", "./p1", "p1/", "p2/../p1"])
def test_a_named_package_is_taken(name: str, tmp_path: Path) -> None:
    package(tmp_path, "p1")
    package(tmp_path, "p2")
    assert Checkout.find(tmp_path, name).package == "p1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p2", "no vLLM package"),
        ("missing", "no vLLM package"),
        ("../elsewhere", "not inside"),
        ("/", "not inside"),
        ("", "no vLLM package"),
    ],
)
def test_a_name_of_no_package_is_a_usage_error(name: str, message: str, tmp_path: Path) -> None:
    package(tmp_path / "elsewhere", ".")
    root = package(tmp_path / "root", "p1")
    (root / "p2").mkdir()
    with pytest.raises(UsageError, match=message):
        Checkout.find(root, name)


@pytest.mark.parametrize("what", ["missing", "a file", "an empty folder"])
def test_what_holds_no_package_is_a_usage_error(what: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    if what == "a file":
        root.write_text("")
    elif what == "an empty folder":
        root.mkdir()
    with pytest.raises(UsageError, match=str(root)):
        Checkout.find(root)


@pytest.mark.parametrize("name", [".git/vllm", ".venv/lib/vllm", ".cache/a/vllm"])
def test_hidden_folders_are_not_searched(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Checkout.find(package(tmp_path, name))


def test_links_to_folders_are_not_followed_in_the_search(tmp_path: Path) -> None:
    package(tmp_path / "elsewhere", "vllm")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "circle").symlink_to(root)
    with pytest.raises(UsageError):
        Checkout.find(root)


@pytest.mark.parametrize(
    ("home", "relative", "name"),
    [
        ("vllm", RUNNER, f"vllm/{RUNNER}"),
        (".", RUNNER, RUNNER),
        ("a/vllm", RUNNER, f"a/vllm/{RUNNER}"),
        ("vllm", "../tests/x.py", "tests/x.py"),
        ("a/vllm", "../tests/x.py", "a/tests/x.py"),
    ],
)
def test_names_are_relative_to_the_root(
    home: str, relative: str, name: str, tmp_path: Path
) -> None:
    found = Checkout.find(package(tmp_path, home))
    assert found.name(relative) == name
    put(tmp_path, name, data=b"here")
    assert found.read(relative) == b"here"


def test_the_package_is_imported_by_its_folders_name(tmp_path: Path) -> None:
    assert Checkout.find(package(tmp_path, "acme_vllm")).package_name == "acme_vllm"
    inside = tmp_path / "acme_vllm"
    assert Checkout.find(inside).package_name == "acme_vllm"


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"x = 1\r\n", "é".encode()])
def test_a_file_is_read_as_it_is(data: bytes, tmp_path: Path) -> None:
    found = Checkout.find(package(tmp_path, "vllm"))
    put(tmp_path, "vllm/a.py", data=data)
    assert found.read("a.py") == data


@pytest.mark.parametrize("relative", ["missing.py", "missing/a.py", f"{WORKER}/a.py"])
def test_a_file_that_is_not_there_is_none(relative: str, tmp_path: Path) -> None:
    assert Checkout.find(package(tmp_path, "vllm")).read(relative) is None


def test_a_link_inside_the_tree_is_followed(tmp_path: Path) -> None:
    found = Checkout.find(package(tmp_path, "vllm"))
    put(tmp_path, "other.py", data=b"linked")
    (tmp_path / "vllm/a.py").symlink_to(tmp_path / "other.py")
    assert found.read("a.py") == b"linked"


def make_link_out(path: Path) -> None:
    outside = path.parents[2] / "outside.py"
    outside.write_text("secret = 1\n")
    path.symlink_to(outside)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.mkdir(), "a folder"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (make_link_out, "leads out of the tree"),
        (lambda path: path.symlink_to("/etc/passwd"), "leads out of the tree"),
        (lambda path: path.symlink_to("/dev/zero"), "leads out of the tree"),
        (lambda path: path.symlink_to("nowhere.py"), "leads nowhere"),
        (lambda path: path.symlink_to(path.name), "circle|symbolic links"),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), MAX_BYTES + 1), "larger"),
    ],
    ids=["folder", "FIFO", "link out", "passwd", "device", "nowhere", "circle", "too large"],
)
def test_what_is_no_file_of_the_tree_is_not_read(make: object, why: str, tmp_path: Path) -> None:
    assert callable(make)
    found = Checkout.find(package(tmp_path / "root", "vllm"))
    make(tmp_path / "root/vllm/a.py")
    with pytest.raises(UnreadableFile, match=why) as caught:
        found.read("a.py")
    assert caught.value.path == "vllm/a.py"
    assert "\n" not in str(caught.value)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    found = Checkout.find(package(tmp_path, "vllm"))
    (tmp_path / "vllm/a.py").mkdir()
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        found.read(WORKER)
        with pytest.raises(UnreadableFile):
            found.read("a.py")
    assert len(os.listdir("/dev/fd")) == before


def test_python_files_of_a_folder_are_listed(tmp_path: Path) -> None:
    found = Checkout.find(
        put(package(tmp_path, "vllm"), "vllm/a/z.py", "vllm/a/b.py", "vllm/a/c.txt")
    )
    assert list(found.python_files("a")) == ["a/b.py", "a/z.py"]
    assert list(found.python_files("missing")) == []
    assert list(found.python_files(WORKER)) == []


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("vllm/_version.py", "__version__ = version = '0.21.0'\n", "0.21.0"),
        ("vllm/_version.py", 'version = "0.21.1.dev3+g1234"\n', "0.21.1.dev3+g1234"),
        ("vllm/_version.py", "# nothing\n", None),
        ("vllm/_version.py", "\x00", None),
        ("PKG-INFO", "Metadata-Version: 2.4\nName: vllm\nVersion: 0.23.0\n", "0.23.0"),
        ("PKG-INFO", "Name: vllm\n", None),
        ("vllm-0.24.0.dist-info/METADATA", "", "0.24.0"),
        ("other-0.24.0.dist-info/METADATA", "", None),
        ("vllm_flash-0.1.dist-info/METADATA", "", None),
    ],
)
def test_the_version_is_what_the_tree_says(
    name: str, text: str, version: str | None, tmp_path: Path
) -> None:
    put(package(tmp_path, "vllm"), name, data=text.encode())
    assert Checkout.find(tmp_path).tree.version == version


def test_the_package_itself_knows_its_version(tmp_path: Path) -> None:
    put(package(tmp_path, "."), "_version.py", data=b"version = '0.21.0'\n")
    assert Checkout.find(tmp_path).tree.version == "0.21.0"


def test_the_commit_is_gits_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "vllm")

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "-q")
    assert Checkout.find(tmp_path).tree.commit is None
    git("commit", "-q", "--allow-empty", "-m", "one")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert (
        Checkout.find(tmp_path).tree.commit
        == subprocess.run(
            ["git", "-C", str(tmp_path), "--git-dir", str(tmp_path / ".git"), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )


@pytest.mark.parametrize("what", ["nothing", "an empty folder", "a file"])
def test_a_tree_without_a_repository_has_no_commit(what: str, tmp_path: Path) -> None:
    package(tmp_path, "vllm")
    if what == "an empty folder":
        (tmp_path / ".git").mkdir()
    elif what == "a file":
        (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert Checkout.find(tmp_path).tree.commit is None


@pytest.mark.parametrize(
    ("folder", "worker", "expected"),
    [
        ("vllm", "from vllm.v1.utils import A\n", "vllm"),
        ("vllm-0.21.0", "from vllm.v1.utils import A\n", "vllm"),
        ("class", "import acme.vllm.v1.utils\n", "acme.vllm"),
        ("plugin", "from vllm.v1.utils import A\n", "plugin"),
        ("vllm-0.21.0", "from .gpu import A\n", "vllm-0.21.0"),
        ("vllm-0.21.0", "# from vllm.v1.utils import A\n", "vllm-0.21.0"),
    ],
)
def test_the_package_has_the_name_that_it_is_imported_by(
    tmp_path: Path, folder: str, worker: str, expected: str
) -> None:
    path = tmp_path / folder / WORKER
    path.parent.mkdir(parents=True)
    path.write_text(worker)
    assert Checkout.find(tmp_path).package_name == expected


def test_a_link_beside_the_package_is_its_name_where_the_worker_uses_it(tmp_path: Path) -> None:
    path = tmp_path / "real" / WORKER
    path.parent.mkdir(parents=True)
    path.write_text("from vllm.v1.utils import A\n")
    (tmp_path / "vllm").symlink_to("real")
    assert Checkout.find(tmp_path).package_name == "vllm"
