"""Three trees shaped like forks: a release's own files, with changes made by this project.

fork-several-launches   a call's size decides which of three kernels the next one launches
fork-renamed            the package has another name
fork-own-warmup         the runner warms the kernel in capture_model, which an eager engine skips
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from trees import copy

BASE = "0.23.0"
RENAMED = "acme_llm"
# The package's name and that of its operators, not the module vllm.config.vllm's.
NAME = re.compile(rb"(?<![.\w])vllm\b|(?<=torch\.ops\.)vllm\b")
BLOCK_TABLE = "v1/worker/block_table.py"
RUNNER = "v1/worker/gpu_model_runner.py"
KERNEL = "_compute_slot_mapping_kernel"
ONE_REQUEST, SEVERAL = "_single_request_kernel", "_several_requests_kernel"
CHOICE = f"""\
        padded = num_tokens >= getattr(self, "padded_from", num_tokens + 1)
        self.padded_from = num_tokens
        if padded:
            kernel = {ONE_REQUEST} if num_reqs == 1 else {SEVERAL}
            LAUNCH
            return
"""
OWN_WARMUP = """\
    def warm_slot_mapping(self) -> None:
        starts = torch.tensor([0, 1], dtype=torch.int32, device=self.device)
        positions = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.input_batch.block_table.compute_slot_mapping(1, starts, positions)

"""


class Changed(Exception):
    """The release's file is not as a fork's change expects it."""


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise Changed(f"{path.name}: {text.count(old)} times {old[:60]!r}")
    path.write_text(text.replace(old, new))


def several_launches(package: Path) -> None:
    path = package / BLOCK_TABLE
    text = path.read_text()
    launch = re.search(rf"        {KERNEL}(\[.*?\n        \)\n)", text, re.DOTALL)
    kernel = text.find(f"@triton.jit\ndef {KERNEL}(")
    if launch is None or kernel < 0:
        raise Changed(f"{path.name}: no launch or no kernel")
    again = "kernel" + launch[1].rstrip().replace("\n", "\n    ")
    text = text.replace(launch[0], CHOICE.replace("LAUNCH", again) + launch[0])
    body = text[text.find(f"@triton.jit\ndef {KERNEL}(") :]
    copies = [body.replace(KERNEL, name) for name in (ONE_REQUEST, SEVERAL)]
    path.write_text("\n\n".join([text.rstrip("\n") + "\n", *copies]))


def renamed(package: Path) -> None:
    for path in package.rglob("*.py"):
        if not path.is_symlink():
            text = path.read_bytes()
            path.write_bytes(NAME.sub(RENAMED.encode(), text))
    for info in package.parent.glob("vllm-*.dist-info"):
        version = info.name.split("-")[1].removesuffix(".dist")
        target = info.with_name(f"{RENAMED}-{version}.dist-info")
        info.rename(target)
        metadata = (target / "METADATA").read_bytes()
        (target / "METADATA").unlink()
        (target / "METADATA").write_bytes(
            re.sub(rb"(?m)^Name: vllm$", b"Name: " + RENAMED.encode(), metadata)
        )
    package.rename(package.with_name(RENAMED))


def own_warmup(package: Path) -> None:
    path = package / RUNNER
    replaced(
        path,
        "    def capture_model(self) -> int:\n",
        f"{OWN_WARMUP}    def capture_model(self) -> int:\n        self.warm_slot_mapping()\n",
    )


FORKS: dict[str, Callable[[Path], None]] = {
    "fork-several-launches": several_launches,
    "fork-renamed": renamed,
    "fork-own-warmup": own_warmup,
}


def make(release: Path, name: str, target: Path) -> None:
    """Lay a fork out in `target`: the release's package and metadata, without its tests."""
    copy(release, target, leave_out=("tests",))
    FORKS[name](target / "vllm")
