"""Warm up again under requests in flight, and compare what they go on to say.

    PYTHONPATH=TREE:SITE python live.py MODEL PACKAGE before|after OUT.json

Under elastic expert parallelism vLLM calls `compile_or_warm_up_model` on live workers: it keeps a
copy of each block table's device and host tensors, clears the tables, calls, and copies them back;
the count of blocks in a row is not kept. This does the same in one process, with requests decoding
greedily, and writes for each way of warming up which requests then differ from an undisturbed run.
`before` (vLLM as released) tries the call as it is, and with the warm-up of the closed pull request
(a row added and cleared, whoever owns it); `after` (rewritten) tries the call as it now is.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

import torch

REQUESTS = 6
NEW_TOKENS = 96
DISTURB_AT_STEP = 12


def closed_pull_request_warmup(runner: Any) -> None:
    """Row 0 is added, its slots are computed, and it is cleared, also when a request owns it."""
    table = runner.input_batch.block_table
    start = torch.tensor([0, 1], dtype=torch.int32, device=runner.device)
    positions = torch.zeros(1, dtype=torch.int64, device=runner.device)
    table.add_row(([1],) * len(table.block_tables), 0)
    table.commit_block_table(1)
    table.compute_slot_mapping(1, start, positions)
    table.clear_row(0)
    table.commit_block_table(1)


def rewarm(wrapper: Any, clear_the_row: bool) -> dict[str, Any]:
    """What elastic expert parallelism does to a worker; says what became of the row counts."""
    worker = getattr(wrapper, "worker", wrapper)
    tables = worker.model_runner.input_batch.block_table
    counts = [table.num_blocks_per_row.copy() for table in tables.block_tables]
    kept = [
        (table.block_table.gpu.clone(), table.block_table.cpu.clone())
        for table in tables.block_tables
    ]
    tables.clear()
    worker.compile_or_warm_up_model()
    if clear_the_row:
        closed_pull_request_warmup(worker.model_runner)
    for table, (device, host) in zip(tables.block_tables, kept, strict=True):
        table.block_table.gpu.copy_(device)
        table.block_table.cpu.copy_(host)
    torch.accelerator.synchronize()
    after = [table.num_blocks_per_row for table in tables.block_tables]
    return {
        "rows_in_use": [int((count > 0).sum()) for count in counts],
        "row_0_blocks_before": [int(count[0]) for count in counts],
        "row_0_blocks_after": [int(count[0]) for count in after],
    }


def generate(llm: Any, options: Any, name: str, disturb: Any = None) -> dict[str, Any]:
    """Every request's tokens; `disturb` is called on the worker after DISTURB_AT_STEP steps."""
    engine = llm.llm_engine
    for number in range(REQUESTS):
        prompt = [2 + (37 * number + 11 * n) % 250 for n in range(18 + 7 * number)]
        engine.add_request(f"{name}-{number}", {"prompt_token_ids": prompt}, options)
    tokens: dict[int, list[int]] = {}
    notes: Any = None
    step = 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            number = int(output.request_id.split("-")[1])
            tokens[number] = list(output.outputs[0].token_ids)
        step += 1
        if disturb is not None and step == DISTURB_AT_STEP:
            (notes,) = llm.collective_rpc(disturb)
    return {"tokens": [tokens[number] for number in range(REQUESTS)], "notes": notes}


def compared(run: dict[str, Any], calm: dict[str, Any]) -> dict[str, Any]:
    firsts = []
    for got, wanted in zip(run["tokens"], calm["tokens"], strict=True):
        differing = [n for n, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
        firsts.append(differing[0] if differing else None)
    return {
        "requests": len(firsts),
        "differing": sum(first is not None for first in firsts),
        "first_difference": firsts,
        "notes": run["notes"],
    }


def main() -> None:
    model, package, side, out = *sys.argv[1:4], Path(sys.argv[4])
    vllm = importlib.import_module(package)
    options = vllm.SamplingParams(
        temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False
    )
    llm = vllm.LLM(
        model=model,
        max_model_len=512,
        max_num_seqs=16,
        max_num_batched_tokens=2048,
        gpu_memory_utilization=0.05,
        kv_cache_memory_bytes=1 << 28,
        enforce_eager=True,
        enable_prefix_caching=False,
        async_scheduling=False,
        attention_backend="TRITON_ATTN",
        seed=0,
    )
    calm = generate(llm, options, "calm")
    again = generate(llm, options, "again")
    results = {
        "undisturbed again": compared(again, calm),
        "called again": compared(
            generate(llm, options, "called", lambda w: rewarm(w, False)), calm
        ),
    }
    if side == "before":
        pull = generate(llm, options, "pull", lambda w: rewarm(w, True))
        results["called again, with the closed pull request's warm-up"] = compared(pull, calm)
    distinct = sorted({len(set(tokens)) for tokens in calm["tokens"]})
    out.write_text(json.dumps({"runs": results, "distinct_tokens": distinct}))


if __name__ == "__main__":
    main()
