"""Pack vLLM releases and what they import for a GPU machine that reaches no package index.

    python benchmarks/gpu/bundle.py [--cache DIR] [--into .bundle]

Writes `SET.tar.zst.NN` pieces of at most 56 MiB into `.bundle/` (git ignores it), for the sets
    site    the packages of requirements.txt, unpacked; beside it a wheel to decompress with
    pair    the releases that run in every case (PAIR), each with its tests
    rest    the other releases (REST), likewise
    later   releases that need torch 2.13 (LATER), and the packages of requirements-later.txt
`unpack.py` puts them together again. The machine needs Python 3.12, torch 2.11.0, triton 3.6.0 and
transformers 5; `later` brings torch and triton, and uses the CUDA libraries of the machine's torch.

To stay small, an architecture's GPU code that the machine (compute capability 9.0) cannot run is
zeroed, and so is FlashAttention's beyond head size 64 in bf16; programs, headers and debug
information that the server does not load are left out. The Python files are the wheel's, byte for
byte.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import fatbin
from pypi_simple import PyPISimple

PAIR = ("0.23.0", "0.26.0")
REST = ("0.20.2", "0.21.0", "0.22.1", "0.24.0", "0.25.1")
LATER = ("0.27.1", "0.28.0")
SETS = ("site", "pair", "rest", "later")
RELEASES = (*PAIR, *REST, *LATER)
PIECE = 56 << 20
ARCH = 90
GLIBC = (39, 38, 36, 35, 34, 31, 28, 27, 24, 17, 12, 5)
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in GLIBC),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
    "any",
)
LEFT_OUT = ("vllm/vllm-rs", "swagger-ui-bundle.js", ".a")
NOT_LOADED = (
    "torch/bin/protoc",
    "torch/include/",
    "triton/_C/libproton",
    "triton/backends/nvidia/lib/cupti/",
    "triton/backends/nvidia/bin/ptxas-blackwell",
    "triton/instrumentation/",
    "triton/plugins/",
)
HEADERS = (".hpp", ".cuh", ".h", ".cu")
HAS_DEBUG_INFO = ("libtriton.so", "libxgrammar_bindings.so")
WINDOW = 27
UNPACKER = "zstandard==0.25.0"


def pip_download(into: Path, *what: str) -> None:
    """Wheels for Python 3.12 on Linux x86-64, none of their dependencies."""
    options = ["--no-deps", "--only-binary=:all:", "--python-version", "3.12"]
    options += ["--implementation", "cp", "--abi", "cp312", "--abi", "abi3", "--abi", "none"]
    for name in PLATFORMS:
        options += ["--platform", name]
    command = [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(into), *what]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def download(cache: Path) -> None:
    """Fill `cache` with wheels/, vllm/ (wheels) and sd/ (sdists); what is there is kept."""
    for name in ("wheels", "wheels-later", "vllm", "sd"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    for name, known in (("", "libcst"), ("-later", "torch")):
        if not any((cache / f"wheels{name}").glob(f"{known}-*.whl")):
            wanted = Path(__file__).with_name(f"requirements{name}.txt")
            pip_download(cache / f"wheels{name}", "-r", str(wanted))
    for release in RELEASES:
        if not any((cache / "vllm").glob(f"vllm-{release}-*.whl")):
            pip_download(cache / "vllm", f"vllm=={release}")
    if not any(cache.glob("zstandard-*.whl")):
        pip_download(cache, UNPACKER)
    missing = [r for r in RELEASES if not (cache / "sd" / f"vllm-{r}.tar.gz").exists()]
    if missing:
        with PyPISimple() as index:
            for package in index.get_project_page("vllm").packages:
                if package.package_type == "sdist" and package.version in missing:
                    index.download_package(package, cache / "sd" / package.filename)


def is_flash_kernel_to_leave_out(code: bytes) -> bool:
    """A FlashAttention 3 kernel for another head size than 64, or another type than bf16."""
    if b"CollectiveMainloopFwdSm90" not in code:
        return b"CollectiveMainloopBwd" in code
    return b"ELi64ENS_10bfloat16_tEfNS_4arch4Sm90" not in code


def trimmed(name: str, data: bytes) -> bytes:
    if ".so" not in Path(name).name or len(data) < 1 << 18:
        return data
    if "_vllm_fa3_C" in name:
        return fatbin.keep_only(data, ARCH, lambda code: not is_flash_kernel_to_leave_out(code))
    return fatbin.keep_only(data, ARCH)


def is_left_out(name: str) -> bool:
    other_python = ".cpython-3" in name and ".cpython-312-" not in name
    headers = name.startswith("vllm/third_party/") and name.endswith(HEADERS)
    return name.endswith(LEFT_OUT) or name.startswith(NOT_LOADED) or other_python or headers


def unpack_wheel(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename
            if member.is_dir() or is_left_out(name):
                continue
            # What belongs at the root of site-packages sits below NAME.data/purelib or platlib.
            parts = Path(name).parts
            if parts[0].endswith(".data") and parts[1] not in ("purelib", "platlib"):
                continue
            target = into.joinpath(*(parts[2:] if parts[0].endswith(".data") else parts))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(trimmed(name, archive.read(name)))
            target.chmod(member.external_attr >> 16 & 0o777 | 0o644)  # ptxas has to be executable
            if name.endswith(HAS_DEBUG_INFO):
                subprocess.run(["strip", "--strip-debug", str(target)], check=True)


def unpack_tests(sdist: Path, into: Path) -> None:
    """The sdist's tests/ (Python files and the prompts its conftest reads) and pyproject.toml."""
    with tarfile.open(sdist) as archive:
        for member in archive:
            _, _, name = member.name.partition("/")
            wanted = name == "pyproject.toml" or (
                name.startswith("tests/") and name.endswith((".py", ".txt"))
            )
            source = archive.extractfile(member) if wanted and member.isfile() else None
            if source is not None:
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read())


def pack(stage: Path, names: list[str], archive: Path) -> int:
    """Tar and compress `stage`'s folders, equal paths of two releases side by side; bytes."""
    files = [path for name in names for path in (stage / name).rglob("*") if path.is_file()]
    files.sort(key=lambda path: (path.relative_to(stage).parts[2:], path))
    listing = "".join(f"{path.relative_to(stage)}\n" for path in files)
    (stage / "listing").write_text(listing)
    command = ["tar", "--sparse", "--owner=0", "--group=0", "-C", str(stage), "-cf", "-", "-T"]
    tar = subprocess.Popen([*command, str(stage / "listing")], stdout=subprocess.PIPE)
    zstd = ["zstd", "-q", "-f", "-15", f"--long={WINDOW}", "-T0", "-o", str(archive)]
    subprocess.run(zstd, stdin=tar.stdout, check=True)
    if tar.wait():
        raise SystemExit("tar failed")
    return archive.stat().st_size


def lay_out(cache: Path, wheels: Path | None, releases: tuple[str, ...], stage: Path) -> list[str]:
    """Unpack a set's wheels into `stage`/site, its releases into `stage`/trees; the folders."""
    shutil.rmtree(stage, ignore_errors=True)
    for wheel in sorted(wheels.glob("*.whl")) if wheels else ():
        unpack_wheel(wheel, stage / "site")
    for release in releases:
        (wheel,) = (cache / "vllm").glob(f"vllm-{release}-*.whl")
        unpack_wheel(wheel, stage / "trees" / release)
        unpack_tests(cache / "sd" / f"vllm-{release}.tar.gz", stage / "trees" / release)
    return [*(["site"] if wheels else []), *(f"trees/{release}" for release in releases)]


def cut(archive: Path) -> list[Path]:
    pieces = []
    with archive.open("rb") as whole:
        while piece := whole.read(PIECE):
            pieces.append(archive.with_name(f"{archive.name}.{len(pieces):02d}"))
            pieces[-1].write_bytes(piece)
    archive.unlink()
    return pieces


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=Path(".bundle/cache"))
    parser.add_argument("--into", type=Path, default=Path(".bundle"))
    parser.add_argument("--only", nargs="*", choices=SETS, default=SETS)
    args = parser.parse_args()
    args.into.mkdir(parents=True, exist_ok=True)
    download(args.cache)
    sets = {
        "site": (args.cache / "wheels", ()),
        "pair": (None, PAIR),
        "rest": (None, REST),
        "later": (args.cache / "wheels-later", LATER),
    }
    for name in args.only:
        stage = args.cache / "stage" / name
        folders = lay_out(args.cache, *sets[name], stage)
        for old in args.into.glob(f"{name}.tar.zst*"):
            old.unlink()
        pack(stage, folders, args.into / f"{name}.tar.zst")
        if name == "site":
            (unpacker,) = args.cache.glob("zstandard-*.whl")
            shutil.copy(unpacker, args.into / unpacker.name)
        for piece in cut(args.into / f"{name}.tar.zst"):
            print(f"{piece}  {piece.stat().st_size / 2**20:.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
