"""codemods.release against a small package index on this machine; nothing here needs a network."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codemods.release import ReleaseError, UnreachableError, cache, fetch, newest, versions
from codemods.release.names import Source, wanted

pytest.importorskip("pypi_simple")
pytest.importorskip("remotezip")
requests = pytest.importorskip("requests")

MANYLINUX = "cp38-abi3-manylinux_2_28_x86_64"
WHEEL = f"vllm-0.21.0-{MANYLINUX}.whl"
SDIST = "vllm-0.21.0.tar.gz"
PACKAGE = {
    "vllm/__init__.py": b"",
    "vllm/_version.py": b'__version__ = "0.21.0"\n',
    "vllm/v1/worker/block_table.py": b"BLOCK = 1\r\n",
    "vllm/v1/worker/gpu/warmup.py": "# \N{EM DASH}\n".encode(),
    "vllm/v1/worker/gpu_worker.py": b"WORKER = 1",
}
UNWANTED = {"vllm/entrypoints/cli.py": b"x", "vllm/v1/worker/gpu/states.py": b"x"}
HOSTILE = (
    "../evil.py",
    "/evil.py",
    "vllm/../../evil.py",
    "vllm/v1/worker/../../../../evil.py",
    "vllm\\v1\\worker\\evil.py",
    "vllm/v1/worker/..\\evil.py",
    "vllm/v1/worker/C:evil.py",
    "vllm/v1/worker/evil.py\n",
    "vllm/v1/worker/evil.py/",
    "vllm/v1/worker//evil.py",
    "./vllm/v1/worker/evil.py",
    "VLLM/v1/worker/evil.py",
    "vllm/v1/worker/\N{CYRILLIC SMALL LETTER IE}vil.py",
)


@dataclass
class Index:
    """What the server serves, how, and what it was asked."""

    pages: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    down: bool = False
    cut: int = 0  # bytes promised but not sent, of each archive
    asked: list[str] = field(default_factory=list)
    sent: int = 0
    url: str = ""

    def offer(
        self, *archives: tuple[str, bytes], digest: bool = True, attributes: str = ""
    ) -> None:
        links = []
        for name, content in archives:
            fragment = f"#sha256={hashlib.sha256(content).hexdigest()}" if digest else ""
            links.append(f'<a href="/files/{name}{fragment}" {attributes}>{name}</a><br>')
            self.pages[f"/files/{name}"] = content
        page = self.pages.get("/simple/vllm/", b"<!DOCTYPE html>\n")
        self.pages["/simple/vllm/"] = page + "\n".join(links).encode()


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, index: Index, *arguments: object) -> None:
        self.index = index
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.index.asked.append(self.path)
        body = self.index.pages.get(self.path)
        if body is None or self.index.down:
            self.send_error(503 if self.index.down else 404)
            return
        wanted_range = self.headers.get("Range")
        if wanted_range and self.index.ranges:
            first, _, last = wanted_range.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(body) - int(last))
            stop = min(int(last) + 1, len(body)) if first and last else len(body)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(body)}")
            body = body[start:stop]
        else:
            self.send_response(200)
        is_page = self.path.endswith("/")
        self.send_header("Content-Type", "text/html" if is_page else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.index.cut and not is_page:
            body = body[: -self.index.cut]
            self.close_connection = True
        self.index.sent += len(body)
        try:
            self.wfile.write(body)
        except OSError:  # the client has seen enough
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    served = Index()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, served))
    served.url = f"http://127.0.0.1:{server.server_port}/simple/"
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    monkeypatch.setenv("VLLM_CODEMODS_CACHE", str(tmp_path / "cache"))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


def recorded(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"sha256={digest},{len(content)}"


def wheel(files: dict[str, bytes], *, record: dict[str, bytes] | None = None) -> bytes:
    """A wheel of those files; `record` gives the contents that RECORD speaks of, if others."""
    info = "vllm-0.21.0.dist-info"
    files = {**files, f"{info}/METADATA": b"Metadata-Version: 2.1\nName: vllm\nVersion: 0.21.0\n"}
    rows = [f"{name},{recorded(content)}" for name, content in {**files, **(record or {})}.items()]
    rows.append(f"{info}/RECORD,,\n")
    return archive_of({**files, f"{info}/RECORD": "\n".join(rows).encode()})


def archive_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def sdist(files: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            for name, target in (links or {}).items():
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, target
                archive.addfile(member)
    return buffer.getvalue()


def in_top(files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"vllm-0.21.0/{name}": content for name, content in files.items()}


def files_under(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def code_of(tree: Path) -> dict[str, bytes]:
    return {name: body for name, body in files_under(tree).items() if name.endswith(".py")}


def refuses(call: Callable[[], object], cache_folder: Path, *words: str) -> str:
    """The call ends in one clear line that holds those words, and nothing is kept."""
    before = files_under(cache_folder)
    with pytest.raises(ReleaseError) as raised:
        call()
    line = str(raised.value)
    assert "\n" not in line
    for word in words:
        assert word in line
    assert files_under(cache_folder) == before
    assert not list(cache_folder.glob(".part-*"))
    return line


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache"


# What is read, and from where


def test_only_the_wanted_files_of_a_wheel_are_kept(index: Index) -> None:
    index.offer((WHEEL, wheel({**PACKAGE, **UNWANTED})))
    tree = fetch("0.21.0")
    info = "vllm-0.21.0.dist-info"
    assert code_of(tree) == PACKAGE
    assert set(files_under(tree)) == {*PACKAGE, f"{info}/METADATA", f"{info}/RECORD"}


def test_the_bulk_of_a_wheel_is_never_read(index: Index) -> None:
    bulk = {"vllm/_C.abi3.so": os.urandom(6 << 20)}
    index.offer((WHEEL, wheel({**bulk, **PACKAGE})))
    fetch("0.21.0")
    assert index.sent < 2 << 20


def test_a_second_call_asks_nobody(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    index.asked.clear()
    assert fetch("0.21.0") == tree
    assert index.asked == []


@pytest.mark.parametrize("spelling", ["v0.21.0", "0.21", " 0.21.0 "])
def test_other_spellings_of_a_release_find_the_same_folder(index: Index, spelling: str) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    assert fetch(spelling) == fetch("0.21.0")


def test_a_cached_release_is_found_without_importing_the_network_libraries(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    script = (
        "import sys; from codemods.release import fetch; print(fetch('0.21.0'));"
        "assert not {'requests', 'pypi_simple', 'remotezip', 'packaging'} & set(sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True
    )
    assert ran.stdout.strip() == str(tree)


def test_the_newest_build_is_read(index: Index) -> None:
    builds = {tag: {**PACKAGE, "vllm/_version.py": tag.encode()} for tag in ("", "-2", "-10")}
    index.offer(
        *((f"vllm-0.21.0{tag}-{MANYLINUX}.whl", wheel(files)) for tag, files in builds.items())
    )
    assert code_of(fetch("0.21.0"))["vllm/_version.py"] == b"-10"


def test_x86_64_is_read_before_a_newer_build_for_aarch64(index: Index) -> None:
    other = wheel({**PACKAGE, "vllm/_version.py": b"aarch64"})
    index.offer((f"vllm-0.21.0-3-{MANYLINUX.replace('x86_64', 'aarch64')}.whl", other))
    index.offer((WHEEL, wheel(PACKAGE)))
    assert code_of(fetch("0.21.0")) == PACKAGE


def test_aarch64_is_read_where_there_is_no_other(index: Index) -> None:
    index.offer((WHEEL.replace("x86_64", "aarch64"), wheel(PACKAGE)))
    assert code_of(fetch("0.21.0")) == PACKAGE


def test_an_sdist_gives_settings_and_tests_and_is_not_kept_whole(index: Index, kept: Path) -> None:
    files = {
        **PACKAGE,
        "pyproject.toml": b"[tool.ruff]\n",
        "tests/conftest.py": b"",
        "tests/v1/worker/test_gpu_model_runner.py": b"def test(): ...\n",
    }
    other = {"csrc/kernel.cu": b"x", "tests/v1/worker/test_utils.py": b"x", "setup.py": b"x"}
    index.offer((SDIST, sdist(in_top({**files, **UNWANTED, **other}))))
    assert files_under(fetch("0.21.0", sdist=True)) == files
    assert not list(kept.rglob("*.tar.gz"))


def test_wheel_and_sdist_of_a_release_are_kept_apart(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)), (SDIST, sdist(in_top(PACKAGE))))
    assert fetch("0.21.0") != fetch("0.21.0", sdist=True)


def test_another_cache_folder_can_be_named(index: Index, tmp_path: Path, kept: Path) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    assert fetch("0.21.0", tmp_path / "here").is_relative_to(tmp_path / "here")
    assert not kept.exists()


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
@pytest.mark.parametrize("prefix", ["", "mirror="])
def test_uv_names_the_index_too(
    index: Index, monkeypatch: pytest.MonkeyPatch, variable: str, prefix: str
) -> None:
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setenv(variable, prefix + index.url)
    index.offer((WHEEL, wheel(PACKAGE)))
    assert code_of(fetch("0.21.0")) == PACKAGE


def test_releases_are_listed_in_order_without_previews_and_withdrawn_ones(index: Index) -> None:
    for version in ("0.9.2", "0.21.0", "0.10.0", "0.22.0rc1"):
        index.offer((f"vllm-{version}-{MANYLINUX}.whl", b""))
    index.offer((f"vllm-0.23.0-{MANYLINUX}.whl", b""), attributes='data-yanked="broken"')
    index.offer(("vllm-nonsense.whl", b""), ("README.txt", b""))
    assert versions() == ("0.9.2", "0.10.0", "0.21.0")
    assert newest() == "0.21.0"


# The cache


def test_a_cached_file_that_was_changed_is_read_anew(index: Index) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    (tree / "vllm/v1/worker/block_table.py").write_bytes(b"changed")
    assert cache.load(tree.parent) is None
    assert code_of(fetch("0.21.0")) == PACKAGE


@pytest.mark.parametrize("name", ["SHA256SUMS", "tree/vllm/__init__.py"])
def test_a_cache_that_lost_a_file_is_read_anew(index: Index, name: str) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    tree = fetch("0.21.0")
    (tree.parent / name).unlink()
    assert code_of(fetch("0.21.0")) == PACKAGE


def test_of_two_at_once_the_first_result_stays(tmp_path: Path) -> None:
    slot = cache.slot(tmp_path, "0.21.0", Source.WHEEL)
    first = cache.store(slot, PACKAGE, WHEEL)
    seen = (first / "vllm/__init__.py").stat().st_ino
    assert cache.store(slot, PACKAGE, WHEEL) == first
    assert (first / "vllm/__init__.py").stat().st_ino == seen
    assert [path.name for path in tmp_path.iterdir()] == [slot.name]


def test_an_interrupted_write_leaves_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    slot = cache.slot(tmp_path, "0.21.0", Source.WHEEL)
    refuses(partial(cache.store, slot, PACKAGE, WHEEL), tmp_path, "No space left", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_made_is_one_clear_line(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("VLLM_CODEMODS_CACHE", str(tmp_path / "file" / "cache"))
    index.offer((WHEEL, wheel(PACKAGE)))
    refuses(partial(fetch, "0.21.0"), kept, "VLLM_CODEMODS_CACHE")


def test_the_cache_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VLLM_CODEMODS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.slot(None, "0.21.0", Source.WHEEL).parent == tmp_path / "vllm-codemods"


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_the_cache_is_in_the_home_folder_when_xdg_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.delenv("VLLM_CODEMODS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = tmp_path / ".cache" / "vllm-codemods"
    assert cache.slot(None, "0.21.0", Source.WHEEL).parent == expected


# What is refused; nothing is kept


@pytest.mark.parametrize(
    "version", ["", "latest", "../0.21.0", "0.21.0/..", "0.21.0+x/../..", "0.21.0\n0.22.0", "0..1"]
)
def test_what_is_no_release_number_never_reaches_the_index(
    index: Index, kept: Path, version: str
) -> None:
    refuses(partial(fetch, version), kept, "is not a release number")
    assert index.asked == []


def test_a_release_that_is_not_there_names_the_nearest(index: Index, kept: Path) -> None:
    for version in ("0.20.0", "0.20.2", "0.21.0", "0.22.0", "0.23.0", "0.24.0"):
        index.offer((f"vllm-{version}-{MANYLINUX}.whl", b""))
    line = refuses(partial(fetch, "0.21.5"), kept, "no vllm 0.21.5")
    assert line.endswith("the nearest are 0.20.2, 0.21.0, 0.22.0, 0.23.0")


def test_a_release_without_a_wheel_is_refused(index: Index, kept: Path) -> None:
    index.offer((SDIST, sdist(in_top(PACKAGE))))
    refuses(partial(fetch, "0.21.0"), kept, "vllm 0.21.0 has no wheel")


def test_a_release_without_an_sdist_is_refused(index: Index, kept: Path) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    refuses(partial(fetch, "0.21.0", sdist=True), kept, "vllm 0.21.0 has no sdist")


def test_an_index_without_vllm_is_refused(index: Index, kept: Path) -> None:
    refuses(partial(fetch, "0.21.0"), kept, "has no vllm", index.url)
    index.offer(("vllm-1.0rc1.tar.gz", b""))
    refuses(versions, kept, "has no vllm release")


def test_no_network_is_one_clear_line(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(UnreachableError):
        versions()
    refuses(partial(fetch, "0.21.0"), kept, "cannot read the package index", "is there a network?")


def test_a_password_in_the_index_address_is_not_shown(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("//", "//user:hush@"))
    line = refuses(partial(fetch, "0.21.0"), kept, "127.0.0.1")
    assert "hush" not in line
    index.offer((WHEEL, b""))
    del index.pages[f"/files/{WHEEL}"]
    assert "hush" not in refuses(partial(fetch, "0.21.0"), kept, "404")


def test_an_index_that_is_down_is_refused_but_not_for_want_of_a_network(
    index: Index, kept: Path
) -> None:
    index.down = True
    line = refuses(partial(fetch, "0.21.0"), kept, "503")
    assert "network" not in line


def test_a_certificate_signed_by_nobody_known_is_not_called_a_missing_network(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untrusted(*arguments: object, **options: object) -> object:
        raise requests.exceptions.SSLError("CERTIFICATE_VERIFY_FAILED")

    monkeypatch.setattr(requests.Session, "get", untrusted)
    line = refuses(partial(fetch, "0.21.0"), kept, "certificate", "REQUESTS_CA_BUNDLE")
    assert "network" not in line


def test_an_address_that_is_no_index_is_refused(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "not an address")
    refuses(partial(fetch, "0.21.0"), kept, "cannot read the package index")


def test_a_server_without_ranges_is_refused_before_the_wheel_is_read(
    index: Index, kept: Path
) -> None:
    index.ranges = False
    index.offer((WHEEL, wheel(PACKAGE)))
    refuses(partial(fetch, "0.21.0"), kept, WHEEL, "range requests")


@pytest.mark.parametrize(("name", "is_sdist"), [(WHEEL, False), (SDIST, True)])
def test_an_archive_the_index_names_but_does_not_have_is_refused(
    index: Index, kept: Path, name: str, is_sdist: bool
) -> None:
    index.offer((name, b""))
    del index.pages[f"/files/{name}"]
    refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, name, "404")


def test_a_file_unlike_its_record_is_refused(index: Index, kept: Path) -> None:
    name = "vllm/v1/worker/block_table.py"
    index.offer((WHEEL, wheel(PACKAGE, record={name: b"BLOCK = 2\r\n"})))
    refuses(partial(fetch, "0.21.0"), kept, name, "SHA-256", "RECORD")


def test_a_file_that_the_record_does_not_list_is_refused(index: Index, kept: Path) -> None:
    info = "vllm-0.21.0.dist-info"
    index.offer((WHEEL, archive_of({**PACKAGE, f"{info}/RECORD": b"a\n\n\xff,b,c\n"})))
    refuses(partial(fetch, "0.21.0"), kept, "SHA-256", "RECORD")


def test_a_wheel_that_lacks_a_recorded_file_is_refused(index: Index, kept: Path) -> None:
    name = "vllm/v1/worker/utils.py"
    index.offer((WHEEL, wheel(PACKAGE, record={name: b""})))
    refuses(partial(fetch, "0.21.0"), kept, name, "lacks")


@pytest.mark.parametrize("records", [(), ("vllm-0.21.0.dist-info", "vllm-9.dist-info")])
def test_a_wheel_without_exactly_one_record_is_refused(
    index: Index, kept: Path, records: tuple[str, ...]
) -> None:
    index.offer((WHEEL, archive_of({**PACKAGE, **{f"{name}/RECORD": b"" for name in records}})))
    refuses(partial(fetch, "0.21.0"), kept, WHEEL, "RECORD")


def test_an_sdist_unlike_the_hash_of_the_index_is_refused(index: Index, kept: Path) -> None:
    index.offer((SDIST, sdist(in_top(PACKAGE))))
    index.pages[f"/files/{SDIST}"] = sdist(in_top({**PACKAGE, "vllm/_version.py": b"other"}))
    refuses(partial(fetch, "0.21.0", sdist=True), kept, SDIST, "SHA-256")


def test_an_sdist_that_nobody_vouches_for_is_refused(index: Index, kept: Path) -> None:
    index.offer((SDIST, sdist(in_top(PACKAGE))), digest=False)
    refuses(partial(fetch, "0.21.0", sdist=True), kept, SDIST, "no SHA-256")


@pytest.mark.parametrize(("name", "is_sdist"), [(WHEEL, False), (SDIST, True)])
def test_an_answer_cut_short_is_refused(
    index: Index, kept: Path, name: str, is_sdist: bool
) -> None:
    whole = sdist(in_top(PACKAGE)) if is_sdist else wheel(PACKAGE)
    index.cut = 40
    index.offer((name, whole))
    refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, name)


@pytest.mark.parametrize("keep", [0, 10, 200])
@pytest.mark.parametrize(("name", "is_sdist"), [(WHEEL, False), (SDIST, True)])
def test_a_broken_archive_is_refused(
    index: Index, kept: Path, name: str, is_sdist: bool, keep: int
) -> None:
    whole = sdist(in_top(PACKAGE)) if is_sdist else wheel(PACKAGE)
    index.offer((name, whole[:keep]))
    refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, name)


def test_bytes_flipped_anywhere_in_a_wheel_never_end_in_a_traceback(index: Index) -> None:
    whole = wheel(PACKAGE)
    for at in range(0, len(whole), 17):
        broken = bytearray(whole)
        broken[at] ^= 0xFF
        index.pages.clear()
        index.offer((WHEEL, bytes(broken)))
        with suppress(ReleaseError):
            tree = fetch("0.21.0")
            # The byte was one that no check covers, such as a date.
            assert code_of(tree) == PACKAGE
            (tree.parent / "SHA256SUMS").unlink()


def test_an_archive_without_the_package_is_refused(index: Index, kept: Path) -> None:
    index.offer((WHEEL, wheel(UNWANTED)), (SDIST, sdist(in_top(UNWANTED))))
    for is_sdist in (False, True):
        refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, "holds no vllm package")


def test_a_file_far_too_large_is_refused_unread(index: Index, kept: Path) -> None:
    files = {**PACKAGE, "vllm/v1/worker/gpu_worker.py": bytes(9 << 20)}
    index.offer((WHEEL, wheel(files)), (SDIST, sdist(in_top(files))))
    for is_sdist in (False, True):
        refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, "gpu_worker.py", "too large")


def test_many_files_that_are_too_large_together_are_refused_unread(
    index: Index, kept: Path
) -> None:
    more = {f"vllm/v1/worker/part_{number}.py": bytes(7 << 20) for number in range(12)}
    index.offer((WHEEL, wheel(PACKAGE | more)), (SDIST, sdist(in_top(PACKAGE | more))))
    for is_sdist in (False, True):
        refuses(partial(fetch, "0.21.0", sdist=is_sdist), kept, "too large", "in all")


def test_a_record_with_a_field_that_is_no_path_is_one_line(index: Index, kept: Path) -> None:
    index.offer((WHEEL, wheel(PACKAGE, record={"a" * 200_000: b""})))
    refuses(partial(fetch, "0.21.0"), kept, "cannot read")


def test_a_page_that_is_too_large_for_an_index_is_refused(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    monkeypatch.setattr("codemods.release.index._LARGEST_PAGE", 20)
    refuses(partial(fetch, "0.21.0"), kept, "more than an index page")


@pytest.mark.parametrize("name", ["pypi_simple", "remotezip"])
def test_a_missing_extra_is_named(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    refuses(partial(fetch, "0.21.0"), kept, name, "pip install 'vllm-codemods[release]'")


# Names that try to leave the folder


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("name", HOSTILE)
def test_an_odd_name_is_not_wanted(name: str, source: Source) -> None:
    assert not wanted(name, source)


@pytest.mark.parametrize("is_sdist", [False, True])
def test_odd_names_in_an_archive_are_left_where_they_are(
    index: Index, tmp_path: Path, is_sdist: bool
) -> None:
    evil = dict.fromkeys(HOSTILE, b"evil")
    tops = {f"{top}/vllm/v1/worker/evil.py": b"evil" for top in ("", "..", "vllm-0.21.1")}
    files = {**in_top({**PACKAGE, **evil}), **evil, **tops}
    index.offer((WHEEL, wheel({**PACKAGE, **evil, **tops})), (SDIST, sdist(files)))
    assert code_of(fetch("0.21.0", sdist=is_sdist)) == PACKAGE
    assert not list(tmp_path.rglob("*evil*"))


def test_links_in_an_sdist_are_never_followed(index: Index, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    links = {
        "vllm-0.21.0/vllm/v1/worker/utils.py": str(tmp_path / "secret"),
        "vllm-0.21.0/vllm/v1/worker": str(tmp_path),
        "vllm-0.21.0/pyproject.toml": "vllm-0.21.0/setup.py",
    }
    index.offer((SDIST, sdist(in_top({**PACKAGE, "setup.py": b"x"}), links=links)))
    tree = fetch("0.21.0", sdist=True)
    assert files_under(tree) == PACKAGE
    assert not [path for path in tree.rglob("*") if path.is_symlink()]
