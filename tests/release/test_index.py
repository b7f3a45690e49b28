"""Which releases the index has, which archive is read, and what is said of an index that fails."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from codemods.release import UnreachableError, fetch, newest, versions
from tests.release.package_index import (
    MANYLINUX,
    PACKAGE,
    SDIST,
    WHEEL,
    Index,
    code_of,
    in_top,
    refuses,
    sdist,
    wheel,
)

pytest.importorskip("pypi_simple")
pytest.importorskip("remotezip")
requests = pytest.importorskip("requests")


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


def test_a_page_that_is_too_large_for_an_index_is_refused(
    index: Index, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.offer((WHEEL, wheel(PACKAGE)))
    monkeypatch.setattr("codemods.release.index._LARGEST_PAGE", 20)
    refuses(partial(fetch, "0.21.0"), kept, "more than an index page")
