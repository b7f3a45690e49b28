"""The kernel edit: which kernels get a parameter listed, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.engine.plan import Outcome, Reason, Status
from codemods.engine.sources import Refusal
from codemods.recipes.warm_up import kernel_edit
from tests.recipes.warm_up.checkouts import KERNEL, block_table, launches
from tests.rewriting import Rewrite, leaves_alone, rewrites

LAUNCH = "_slots_kernel[(num_reqs,)](1, 2, SIZE=3)"
LISTED = '@triton.jit(do_not_specialize=["num_tokens"])'


def rewrite(root: Path) -> Rewrite:
    def run(data: bytes) -> bytes:
        edited = kernel_edit.edit(launches(root, data).kernels, "num_tokens")
        modules = [one.module.bytes for one in edited.values() if one.module is not None]
        return modules[0] if modules else data

    return run


def outcome(root: Path, text: str, files: dict[str, str] | None = None) -> Outcome:
    return next(
        iter(kernel_edit.edit(launches(root, text, files).kernels, "num_tokens").values())
    ).outcome


def refusal(root: Path, text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        kernel_edit.edit(launches(root, text).kernels, "num_tokens")
    return caught.value


def test_a_bare_decorator_gets_the_list(tmp_path: Path) -> None:
    text = block_table(LAUNCH)
    rewrites(rewrite(tmp_path), text, text.replace("@triton.jit", LISTED))
    one = outcome(tmp_path, text)
    assert (one.status, one.reason) == (Status.EDIT, Reason.ADDED)
    assert "_slots_kernel" in one.detail


def test_a_list_is_joined(tmp_path: Path) -> None:
    text = block_table(LAUNCH).replace(
        "@triton.jit", '@triton.jit(do_not_specialize=["max_num_tokens"])'
    )
    rewrites(
        rewrite(tmp_path),
        text,
        text.replace('"max_num_tokens"]', '"max_num_tokens", "num_tokens"]'),
    )
    assert outcome(tmp_path, text).reason is Reason.MERGED


@pytest.mark.parametrize(
    "listed",
    ['["num_tokens"]', '["num_tokens", "max_num_tokens"]', '("num_tokens",)', "[0]", "[1, 0]"],
)
def test_a_list_that_has_the_name_is_left_alone(listed: str, tmp_path: Path) -> None:
    text = block_table(LAUNCH).replace("@triton.jit", f"@triton.jit(do_not_specialize={listed})")
    leaves_alone(rewrite(tmp_path), text)
    one = outcome(tmp_path, text)
    assert (one.status, one.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)
    assert one.line == text.split("@triton.jit")[0].count("\n") + 1


def test_the_other_limit_is_left_specialised(tmp_path: Path) -> None:
    now = rewrite(tmp_path)(block_table(LAUNCH).encode())
    assert b'"max_num_tokens"' not in now


def test_no_line_above_a_kernel_moves(tmp_path: Path) -> None:
    text = block_table(LAUNCH)
    now = rewrite(tmp_path)(text.encode()).decode()
    assert now.count("\n") == text.count("\n")


NEIGHBOURS = """
    @triton.jit
    def _slots_kernels(num_tokens):
        pass


    @triton.jit
    def _eagle_slots_kernel(num_tokens):
        pass


    @numba.jit
    def _numba_kernel(num_tokens):
        pass


    def _plain(num_tokens):
        pass
    """


def test_kernels_that_are_not_launched_are_left_alone(tmp_path: Path) -> None:
    text = block_table(LAUNCH, f"{KERNEL}\n{NEIGHBOURS}", head="import numba\n")
    rewrites(rewrite(tmp_path), text, text.replace("@triton.jit", LISTED, 1))


def test_every_launched_kernel_that_takes_the_name_is_rewritten(tmp_path: Path) -> None:
    rest = "\n\n".join(
        f"@triton.jit\ndef {name}({parameters}):\n    pass\n"
        for name, parameters in (
            ("_a_kernel", "num_tokens"),
            ("_b_kernel", "x, num_tokens"),
            ("_c_kernel", "x"),
            ("_d_kernel", "num_tokens: tl.constexpr"),
        )
    )
    text = block_table("\n".join(f"_{name}_kernel[(1,)](1)" for name in "abcd"), rest)
    rewrites(rewrite(tmp_path), text, text.replace("@triton.jit", LISTED, 2))
    assert "_a_kernel, _b_kernel" in outcome(tmp_path, text).detail


def test_one_kernel_listed_and_one_not_is_an_edit_of_the_second(tmp_path: Path) -> None:
    rest = "\n\n".join(
        f"{decorator}\ndef {name}(num_tokens):\n    pass\n"
        for name, decorator in (("_a_kernel", LISTED), ("_b_kernel", "@triton.jit"))
    )
    text = block_table("_a_kernel[(1,)](1)\n_b_kernel[(1,)](1)", rest)
    rewrites(rewrite(tmp_path), text, text.replace("@triton.jit\n", f"{LISTED}\n"))
    assert outcome(tmp_path, text).status is Status.EDIT


def test_kernels_of_two_files_share_an_outcome(tmp_path: Path) -> None:
    other = "import triton\n\n\n@triton.jit\ndef _other_kernel(num_tokens):\n    pass\n"
    text = block_table(
        f"{LAUNCH}\nother._other_kernel[(1,)](1)", head="from vllm.v1.worker import other\n"
    )
    found = launches(tmp_path, text, {"v1/worker/other.py": other})
    edited = kernel_edit.edit(found.kernels, "num_tokens")
    assert sorted(edited) == ["vllm/v1/worker/block_table.py", "vllm/v1/worker/other.py"]
    (one,) = {edit.outcome for edit in edited.values()}
    assert one.file == next(iter(edited))


def test_two_definitions_are_both_rewritten(tmp_path: Path) -> None:
    rest = """
        if HAS_TRITON:

            @triton.jit
            def _slots_kernel(num_tokens):
                pass

        else:

            @triton.jit
            def _slots_kernel(x, num_tokens):
                pass
        """
    text = block_table(LAUNCH, rest)
    rewrites(rewrite(tmp_path), text, text.replace("@triton.jit", LISTED))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("x, y", "its parameters are x, y"),
        ("", "its parameters are none"),
        ("n_tokens, num_token", "its parameters are n_tokens, num_token"),
        ("num_tokens: tl.constexpr", "is a constexpr"),
        ("num_tokens: 'tl.constexpr | int'", "is a constexpr"),
    ],
)
def test_a_kernel_without_the_parameter_is_refused(
    parameters: str, message: str, tmp_path: Path
) -> None:
    text = block_table(LAUNCH, f"@triton.jit\ndef _slots_kernel({parameters}):\n    pass\n")
    one = refusal(tmp_path, text)
    assert one.reason is Reason.PARAMETER_MISSING
    assert message in one.detail
    assert "--skip kernel" in one.detail
    assert one.line == text.split("@triton.jit")[0].count("\n") + 1


@pytest.mark.parametrize(
    "arguments", ["do_not_specialize=NAMES", "**SETTINGS", "do_not_specialize=names()"]
)
def test_a_list_that_cannot_be_read_is_refused(arguments: str, tmp_path: Path) -> None:
    one = refusal(tmp_path, block_table(LAUNCH).replace("jit", f"jit({arguments})", 1))
    assert one.reason is Reason.AMBIGUOUS
    assert "by hand" in one.detail


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_line_ends_and_a_missing_last_one_stay(end: str, tmp_path: Path) -> None:
    text = block_table(LAUNCH).replace("\n", end).rstrip()
    rewrites(rewrite(tmp_path), text, text.replace("@triton.jit", LISTED))


def test_a_launch_out_of_reach_beside_ours_is_reported(tmp_path: Path) -> None:
    text = block_table(f"{LAUNCH}\nacme.kernel[(1,)](1)", head="import acme")
    found = launches(tmp_path, text)
    detail = next(
        iter(kernel_edit.edit(found.kernels, "num_tokens", found.unresolved).values())
    ).outcome.detail
    assert detail.endswith(
        "_slots_kernel; acme.kernel, launched too, is not defined in this package"
    )
