"""What is read of a wheel or an sdist, and which are refused."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from codemods.release import ReleaseError, fetch
from tests.release.package_index import (
    HOSTILE,
    PACKAGE,
    SDIST,
    WHEEL,
    Index,
    archive_of,
    code_of,
    files_under,
    in_top,
    refuses,
    sdist,
    wheel,
)

pytest.importorskip("pypi_simple")
pytest.importorskip("remotezip")


def test_the_bulk_of_a_wheel_is_never_read(index: Index) -> None:
    bulk = {"vllm/_C.abi3.so": os.urandom(6 << 20)}
    index.offer((WHEEL, wheel({**bulk, **PACKAGE})))
    fetch("0.21.0")
    assert index.sent < 2 << 20


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


def test_an_sdist_without_a_hash_is_refused(index: Index, kept: Path) -> None:
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
