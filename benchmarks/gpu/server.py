"""One OpenAI-compatible server: start it, wait for it, ask it, read what it compiled, end it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jobs import Job

# 17, 16 and 1 tokens fall into the three classes of an integer argument; then other lengths.
PROMPTS = (17, 16, 1, 100, 2, 33, 64)
TOGETHER = 4
REQUEST_LIMIT_S = 180
KV_CACHE = str(1 << 30)
MONITOR = re.compile(
    r"^(?:\((?P<process>[^)]*)\) )?.*?"
    r"(?:JIT compilation|autotun\w+) during inference: (?P<kernel>\w+(?:\.\w+)*)"
)
# No NVLink multicast, whatever a release would choose: see jobs.PLAIN_NCCL.
PLAIN_NCCL = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",
    "VLLM_ALLREDUCE_USE_FLASHINFER": "0",
    "VLLM_USE_NCCL_SYMM_MEM": "0",
}
ACTIVATED = "JIT monitor activated"


def environment(tree: Path, site: Path, work: Path) -> dict[str, str]:
    """Variables for a process that imports vLLM from `tree`; every cache is new, in `work`."""
    return os.environ | {
        "PYTHONPATH": f"{tree}:{site}",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_USE_V2_MODEL_RUNNER": "0",
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
    }


class Server:
    """A running `job`; use it as a context, or call stop()."""

    def __init__(self, job: Job, root: Path, work: Path, port: int, python: str) -> None:
        self.job, self.work, self.port = job, work, port
        work.mkdir(parents=True, exist_ok=True)
        self.log = work / "log"
        tree = root / ("trees" if job.side == "before" else "after") / job.release
        command = [python, "-m", "vllm.entrypoints.openai.api_server"]
        command += ["--model", str(root / "models" / job.case.model)]
        command += ["--served-model-name", "tiny", "--load-format", "dummy"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        if "--max-model-len" not in job.case.arguments:
            command += ["--max-model-len", "2048"]
        command += ["--max-num-seqs", "16", "--max-num-batched-tokens", "2048"]
        command += ["--gpu-memory-utilization", "0.05", "--kv-cache-memory-bytes", KV_CACHE]
        command += job.case.arguments
        self.command = command
        self.started = time.monotonic()
        self.startup_s: float | None = None
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=work,
                env=environment(tree, root / "site", work),
                start_new_session=True,
            )

    def poll(self) -> str:
        """`starting`, `up` or `dead`."""
        if self.startup_s is not None:
            return "up"
        if self.process.poll() is not None:
            return "dead"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2):
                self.startup_s = time.monotonic() - self.started
                return "up"
        except (OSError, urllib.error.URLError):
            return "starting"

    def compiled(self) -> Counter[str]:
        """Kernels in the Triton caches, by name: one for each specialisation compiled so far."""
        folders = (self.work / "triton", self.work / "vllm", self.work / "inductor")
        found = (path for folder in folders for path in folder.rglob("*.ttir"))
        return Counter(path.stem for path in found)

    def post(self, tokens: list[int]) -> tuple[int, float, Any]:
        """(HTTP status, seconds, body) of one request; status 0 when none came back."""
        if self.job.case.endpoint == "/v1/embeddings":
            body: dict[str, Any] = {"model": "tiny", "input": [tokens]}
        else:
            body = {"model": "tiny", "prompt": tokens, "max_tokens": 8, "temperature": 0}
            body["ignore_eos"] = True
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{self.job.case.endpoint}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        begun = time.perf_counter()
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_LIMIT_S) as answer:
                data = json.load(answer)
                return answer.status, time.perf_counter() - begun, data
        except urllib.error.HTTPError as error:
            return error.code, time.perf_counter() - begun, error.read().decode()[:2000]
        except (OSError, ValueError) as error:
            return 0, time.perf_counter() - begun, repr(error)

    def ask(self) -> list[dict[str, Any]]:
        """The first requests, one after another, then TOGETHER at once, as records."""
        records = []
        before = self.compiled()
        for number, length in enumerate((*PROMPTS, 0)):
            if length:
                answers = [self.post(prompt(number, length))]
            else:
                with ThreadPoolExecutor(TOGETHER) as pool:
                    lists = [prompt(number + n, 20 + 9 * n) for n in range(TOGETHER)]
                    answers = list(pool.map(self.post, lists))
            after = self.compiled()
            bad = [body for status, _, body in answers if status != 200]
            records.append(
                {
                    "tokens": length or [20 + 9 * n for n in range(TOGETHER)],
                    "status": [status for status, _, _ in answers],
                    "ms": round(1000 * max(seconds for _, seconds, _ in answers), 1),
                    "compiled": dict(sorted((after - before).items())),
                    **({"error": str(bad[0])[:2000]} if bad else {}),
                }
            )
            before = after
        return records

    def monitor(self) -> list[dict[str, Any]]:
        """The monitor's reports: which process named which kernel, and how often."""
        text = self.log.read_text(errors="replace")
        seen: Counter[tuple[str, str]] = Counter()
        for line in text.splitlines():
            if found := MONITOR.search(line):
                process = re.sub(r" pid=\d+", "", found["process"] or "")
                seen[process, found["kernel"]] += 1
        return [{"process": p, "kernel": k, "count": n} for (p, k), n in sorted(seen.items())]

    def result(self, requests: list[dict[str, Any]], at_start: Counter[str]) -> dict[str, Any]:
        text = self.log.read_text(errors="replace")
        return {
            "kind": "serve",
            "name": self.job.name,
            "release": self.job.release,
            "case": self.job.case.name,
            "side": self.job.side,
            "startup_s": round(self.startup_s, 1) if self.startup_s is not None else None,
            "slot_mapping_kernels_at_start": slot_mapping_kernels(at_start),
            "requests": requests,
            "monitor": self.monitor(),
            "monitor_activated": text.count(ACTIVATED),
            "arguments": list(self.job.case.arguments),
            **({"error": text[-3000:]} if self.startup_s is None else {}),
        }

    def stop(self) -> None:
        """End the server's process group: politely, then at once."""
        for number, patience_s in ((signal.SIGTERM, 8.0), (signal.SIGKILL, 5.0)):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()


def prompt(number: int, length: int) -> list[int]:
    """`length` token ids that no other request begins with; they repeat, so n-grams are found."""
    return [2 + (number * 31 + position % 7) % 250 for position in range(length)]


def slot_mapping_kernels(compiled: Counter[str]) -> int:
    """How many specialisations of V1's slot-mapping kernel are among `compiled`."""
    return sum(count for name, count in compiled.items() if is_slot_mapping_kernel(name))


def is_slot_mapping_kernel(name: str) -> bool:
    """True of V1's kernel, under its own name or a class's; not of V2's, whose name is plural."""
    return name == "_compute_slot_mapping_kernel" or name.startswith("ComputeSlotMappingKernel")
