"""The judge, on trees that it runs: what is right has no fault, and what is wrong has one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from peers.git import committed, git
from peers.judging import Case, judge

from tests.forks import trees
from tests.prove.forked import needs_the_verify_extra

pytestmark = needs_the_verify_extra

FORK = "00-monitor-in-triton-utils"
CALL = b"""
        if not self.use_v2_model_runner:
            # V1: compile the slot mapping kernel before the first request.
            warmup_v1_slot_mapping_kernel(self.model_runner)
"""
LAST = b"\n        return CompilationTimes("
BARE = b"@triton.jit\n"
LISTED = b'@triton.jit(do_not_specialize=["num_tokens"])\n'
WORKER, TABLE, WARMUP = (f"vllm/{name}" for name in (trees.WORKER, trees.BLOCK_TABLE, trees.WARMUP))
# What is done to the right tree, and a word of what the judge must say of it.
SPOILT = {
    "no-call": (WORKER, CALL, b"", "requests compile"),
    "call-after-the-monitor": (WORKER, LAST, CALL + LAST, "requests compile"),
    "no-import": (WORKER, b", warmup_v1_slot_mapping_kernel\n", b"\n", "does not start"),
    "no-decorator": (TABLE, LISTED, BARE, "requests compile"),
    "call-for-v2-too": (WORKER, b"if not self.use_v2_model_runner:", b"if True:", "V2"),
    "a-call-lost": (WORKER, b"        kernel_warmup(self)\n", b"", "calls other things"),
    "live-rows": (WARMUP, b"group.num_blocks_per_row.any()", b"False", "live request"),
}


def spoilt(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    file, old, new, _ = SPOILT[name]
    text = files[file].replace(CALL, b"") if name == "call-after-the-monitor" else files[file]
    assert text.count(old) == 1, name
    return {**files, file: text.replace(old, new)}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """The faults of the tree as it is, of the right rewrite, and of each that was spoilt."""
    folder = tmp_path_factory.mktemp("judged")
    fork = trees.fork(FORK)
    before = fork.tree.write_to(folder / "before")
    right = committed(fork.tree.write_to(folder / "right"))
    git(right, "apply", "-", stdin=fork.golden)
    files = {name: (right / name).read_bytes() for name in fork.tree.files}
    places = {"before": before, "right": right}
    for name in SPOILT:
        places[name] = trees.Tree(spoilt(files, name)).write_to(folder / name)
    cases = [Case("fork", "vllm", before, place) for place in places.values()]
    with ThreadPoolExecutor(2) as pool:
        yield dict(zip(places, judge(cases, pool), strict=True))


def test_the_right_rewrite_has_no_fault(found: dict[str, list[str]]) -> None:
    assert found["right"] == []


def test_a_tree_without_the_fix_has_one(found: dict[str, list[str]]) -> None:
    assert found["before"] == ["requests compile a kernel, or the monitor sees it compile"]


@pytest.mark.parametrize("name", SPOILT)
def test_a_wrong_rewrite_has_one(name: str, found: dict[str, list[str]]) -> None:
    assert any(SPOILT[name][3] in fault for fault in found[name]), found[name]
