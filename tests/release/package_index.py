"""A small package index on this machine, and archives for it; nothing here needs a network."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codemods.release import ReleaseError

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


@contextmanager
def served(index: Index) -> Iterator[str]:
    """The index on a port of its own; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, index))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple/"
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
