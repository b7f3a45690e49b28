"""One OpenAI-compatible server of a tree: start it, ask it, read what it compiled, end it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import EMBEDDINGS, KV_BLOCK_ZEROING, SLOT_MAPPING, Case

# 17, 16 and 1 tokens fall into the three classes of an integer argument; then other lengths.
FIRST = (17, 16, 1)
MORE = (100, 2, 33, 64)
TOGETHER = (20, 29, 38, 47)
AFTER_SLEEP = (17, 48)
NEW_TOKENS = 12
REQUEST_LIMIT_S = 180
KV_CACHE = str(1 << 30)
HOOK = Path(__file__).with_name("compile_hook")
MONITOR = re.compile(
    r"^(?:\((?P<process>[^)]*)\) )?.*?"
    r"(?:JIT compilation|autotun\w+) during inference: (?P<kernel>\w+(?:\.\w+)*)"
)
NOT_UP, ENDED = "not up", "ended with"
ACTIVATED = "JIT monitor activated"
# No NVLink multicast, whatever a release would choose: see cases.PLAIN_NCCL.
PLAIN_NCCL = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",
    "VLLM_ALLREDUCE_USE_FLASHINFER": "0",
    "VLLM_USE_NCCL_SYMM_MEM": "0",
}
# A recipe's kernels: the ones its module launches, whatever a fork calls them; by name in the
# monitor's lines, which name no module. V2's kernel of slots has a plural name and is another.
MODULES = {SLOT_MAPPING: ".v1.worker.block_table", KV_BLOCK_ZEROING: ".v1.worker.utils"}
NAMES = {
    SLOT_MAPPING: re.compile(r"_compute_slot_mapping_kernel$|ComputeSlotMappingKernel\b"),
    KV_BLOCK_ZEROING: re.compile(r"_zero_kv_blocks_kernel$"),
}


@dataclass(frozen=True)
class Served:
    """A tree that can be served: the folder to import from, its package, and beside it the site.

    `site` holds what the tree imports and the environment lacks; `label` is the release or fork.
    """

    label: str
    side: str
    folder: Path
    package: str = "vllm"
    site: Path | None = None
    sha256: str = ""


@dataclass(frozen=True)
class Compile:
    """A kernel that a process of the server compiled for a launch."""

    at: float
    process: str
    module: str
    kernel: str

    def belongs_to(self, recipe: str) -> bool:
        return self.module.endswith(MODULES[recipe]) or is_kernel_of(recipe, self.kernel)


def is_kernel_of(recipe: str, name: str) -> bool:
    return NAMES[recipe].search(name) is not None


def environment(tree: Served, work: Path, more: dict[str, str]) -> dict[str, str]:
    """Variables for a process that imports vLLM from `tree`; every cache is new, in `work`."""
    paths = [str(HOOK), str(tree.folder), *([str(tree.site)] if tree.site else [])]
    inherited = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([*paths, *(e for e in inherited if e not in paths)]),
        "COMPILE_LOG": str(work / "compiles.jsonl"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        **PLAIN_NCCL,
        "OMP_NUM_THREADS": "4",
        "TOKENIZERS_PARALLELISM": "false",
        "TRITON_CACHE_DIR": str(work / "triton"),
        "VLLM_CACHE_ROOT": str(work / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
        "FLASHINFER_WORKSPACE_BASE": str(work / "flashinfer"),
        **more,
    }


def free_port() -> int:
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return int(any_socket.getsockname()[1])


class Server:
    """A running server in a process group of its own; a thread notes when it came up."""

    def __init__(
        self,
        tree: Served,
        case: Case,
        work: Path,
        models: Path,
        gpus: Sequence[int] = (),
        python: str = sys.executable,
    ) -> None:
        self.tree, self.case, self.work = tree, case, work
        self.port = free_port()
        work.mkdir(parents=True, exist_ok=True)
        self.log = work / "log"
        self.started = time.monotonic()
        self.start_s: float | None = None
        self.stopped = False
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} if gpus else {}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command(models, python),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=work,
                env=environment(tree, work, {**case.environment, **visible}),
                start_new_session=True,
            )
        self.settled = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def command(self, models: Path, python: str) -> list[str]:
        options = {
            "--model": str(models / self.case.model),
            "--served-model-name": "tiny",
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--max-model-len": "2048",
            "--max-num-seqs": "16",
            "--max-num-batched-tokens": "2048",
            "--gpu-memory-utilization": "0.05",
            "--kv-cache-memory-bytes": KV_CACHE,
        }
        own = [text.replace("MODELS", str(models)) for text in self.case.arguments]
        defaults = [part for name, text in options.items() if name not in own
                    for part in (name, text)]  # fmt: skip
        return [python, "-m", f"{self.tree.package}.entrypoints.openai.api_server", *defaults, *own]

    def _watch(self) -> None:
        """Note the time at which this very server answers, or that it ended; ten times a second."""
        while self.process.poll() is None:
            try:
                with urllib.request.urlopen(self._url("/health"), timeout=5):
                    self.start_s = time.monotonic() - self.started
                    break
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        self.settled.set()

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def wait(self, limit_s: float) -> bool:
        """Whether the server is up within `limit_s`."""
        self.settled.wait(max(0.0, limit_s))
        return self.start_s is not None

    def post(self, path: str, body: dict[str, Any] | None) -> tuple[int, float, Any]:
        """(HTTP status, seconds, body) of one call; status 0 when no answer came."""
        data = json.dumps(body).encode() if body is not None else b""
        request = urllib.request.Request(
            self._url(path), data, {"Content-Type": "application/json"}, method="POST"
        )
        begun = time.perf_counter()
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_LIMIT_S) as answer:
                text = answer.read()
                took = time.perf_counter() - begun
                return answer.status, took, json.loads(text) if text else {}
        except urllib.error.HTTPError as error:
            return error.code, time.perf_counter() - begun, error.read().decode()[:2000]
        except (OSError, ValueError) as error:
            return 0, time.perf_counter() - begun, repr(error)

    def ask(self, number: int, length: int, model: str = "tiny") -> dict[str, Any]:
        """One request of `length` tokens, as a record with the answer's own tokens."""
        body: dict[str, Any] = {"model": model}
        if self.case.endpoint == EMBEDDINGS:
            body |= {"input": [prompt(number, length)], "encoding_format": "base64"}
        else:
            body |= {"prompt": prompt(number, length), "max_tokens": NEW_TOKENS, "temperature": 0}
            body |= {"ignore_eos": True, "return_token_ids": True}
        status, seconds, answer = self.post(self.case.endpoint, body)
        record = {"tokens": length, "status": status, "ms": round(1000 * seconds, 1)}
        if model != "tiny":
            record["model"] = model
        if status != 200:
            return record | {"error": str(answer)[-500:]}
        return record | {"answer": answer_of(answer)}

    def ask_first(self) -> list[dict[str, Any]]:
        """The requests whose time counts, one after another."""
        return [self.ask(number, length) for number, length in enumerate(FIRST)]

    def ask_more(self) -> list[dict[str, Any]]:
        """More lengths; some at once; with an adapter, or after sleep, where the case has that."""
        records = [self.ask(10 + n, length) for n, length in enumerate(MORE)]
        if self.case.adapter:
            records += [self.ask(20 + n, length, "adapter") for n, length in enumerate(FIRST)]
        with ThreadPoolExecutor(len(TOGETHER)) as pool:
            numbers = range(30, 30 + len(TOGETHER))
            # What is batched with what is up to chance, and with it the last bits of a sum.
            records += [{**r, "together": True} for r in pool.map(self.ask, numbers, TOGETHER)]
        if self.case.sleeps:
            for path in ("/sleep?level=1", "/wake_up"):
                status, seconds, _ = self.post(path, None)
                records.append({"call": path, "status": status, "ms": round(1000 * seconds, 1)})
            records += [self.ask(40 + n, length) for n, length in enumerate(AFTER_SLEEP)]
        return records

    def compiles(self) -> list[Compile]:
        path = self.work / "compiles.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = []
        for line in lines:
            facts = json.loads(line)
            found.append(Compile(facts["time"], facts["process"], facts["module"], facts["kernel"]))
        return found

    def monitor(self) -> list[dict[str, Any]]:
        """The monitor's reports: which process named which kernel, and how often."""
        seen: Counter[tuple[str, str]] = Counter()
        for line in self.log.read_text(errors="replace").splitlines():
            if found := MONITOR.search(line):
                process = re.sub(r" pid=\d+", "", found["process"] or "")
                seen[process, found["kernel"]] += 1
        return [{"process": p, "kernel": k, "count": n} for (p, k), n in sorted(seen.items())]

    def result(self, requests: list[dict[str, Any]], first_at: float | None) -> dict[str, Any]:
        """All that is known of this server; `first_at` is when its first request was sent."""
        text = self.log.read_text(errors="replace")
        until = first_at if first_at is not None else time.time()
        found = self.compiles()
        facts = {
            "start_s": round(self.start_s, 1) if self.start_s is not None else None,
            "tree_sha256": self.tree.sha256,
            "compiles": {
                "start": counted(c for c in found if c.at < until),
                "requests": counted(c for c in found if c.at >= until),
            },
            "kernels": {
                recipe: sorted({c.kernel for c in found if c.belongs_to(recipe)})
                for recipe in MODULES
            },
            "requests": requests,
            "monitor": self.monitor(),
            "monitor_activated": text.count(ACTIVATED),
            "arguments": list(self.case.arguments),
        }
        if self.start_s is None:
            facts["error"] = f"{self.why_not_up()}:\n{text[-3000:]}"
        return facts

    def why_not_up(self) -> str:
        code = self.process.poll()
        if code is not None:
            return f"{ENDED} {code}"
        return f"{NOT_UP} in {time.monotonic() - self.started:.0f} s"

    def stop(self) -> None:
        """End the server's process group: politely, then at once. Once is enough."""
        if self.stopped:
            return
        self.stopped = True
        for number, patience_s in ((signal.SIGTERM, 6.0), (signal.SIGKILL, 5.0)):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue
        with contextlib.suppress(ProcessLookupError):  # what the leader left in its group
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def counted(compiles: Any) -> dict[str, dict[str, int]]:
    """Process, then kernel, then how many specialisations it compiled."""
    found: dict[str, Counter[str]] = {}
    for one in compiles:
        found.setdefault(one.process, Counter())[one.kernel] += 1
    return {process: dict(sorted(kernels.items())) for process, kernels in sorted(found.items())}


def prompt(number: int, length: int) -> list[int]:
    """`length` token ids that no other request begins with; they repeat, so n-grams are found."""
    return [2 + (number * 31 + position % 7 + position // 21) % 250 for position in range(length)]


def answer_of(body: Any) -> Any:
    """The generated token ids of a completion; an embedding's bytes in base64."""
    if "data" in body:
        return body["data"][0]["embedding"]
    choice = body["choices"][0]
    return choice.get("token_ids") or choice["text"]
