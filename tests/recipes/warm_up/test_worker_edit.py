"""The worker edit: where the call goes, how it is guarded, and when it is refused."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Edited, Refusal
from codemods.recipes.warm_up import worker_edit
from tests.forks.trees import WORKER, fork
from tests.recipes.warm_up.workers import sources, worker_file
from tests.rewriting import leaves_alone, rewrites, sound

FUNCTION = "warmup_v1_slot_mapping_kernel"
OURS = worker_edit.Call(FUNCTION, "the slot mapping kernel")
V2 = "warmup_kernels(self.model_runner, self.execute_model, self.sample_tokens)"
V1 = "self.model_runner._dummy_sampler_run(hidden_states=last)"
BRANCH = f"""
if self.use_v2_model_runner:
    {V2}
elif get_pp_group().is_last_rank:
    {V1}
"""
MANY_ARMS = f"""
if self.use_v2_model_runner:
    {V2}
elif self.x:
    y()
elif last:
    {V1}
else:
    z()
"""
NESTED = f"""
if self.use_v2_model_runner:
    if self.x:
        {V2}
    else:
        {V2}
else:
    if last:
        {V1}
"""
CALL = f"""
if not self.use_v2_model_runner:
    # V1: compile the slot mapping kernel before the first request.
    {FUNCTION}(self.model_runner)
"""
MONITOR = """
# Warm: from here on every compile is reported.
from vllm.triton_utils.jit_monitor import activate

activate()
"""
END = "return CompilationTimes(1.0)"


def module(
    *parts: str, imports: str = "from .gpu.warmup import warmup_kernels", rest: str = ""
) -> str:
    """A worker whose method is made of these parts, an empty line between each two."""
    method = indent("\n\n".join(dedent(part).strip() for part in parts if part), " " * 8)
    return (
        f"from vllm.distributed import get_pp_group\n\n{imports}\n\n\n"
        f"class Worker:\n    def compile_or_warm_up_model(self):\n{method}\n{rest}"
    )


def imported(text: str) -> str:
    return text.replace("import warmup_kernels", f"import warmup_kernels, {FUNCTION}", 1)


def edit(data: bytes) -> Edited:
    return worker_edit.edit(worker_file(data), OURS, sources(FUNCTION))


def rewrite(data: bytes) -> bytes:
    changed = edit(data).module
    return data if changed is None else changed.bytes


def refusal(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        edit(text.encode())
    return caught.value


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        pytest.param([BRANCH, MONITOR, END], 1, id="before the monitor"),
        pytest.param([BRANCH, "set_random_seed(1)", MONITOR, END], 1, id="behind the branch"),
        pytest.param([BRANCH, END], 1, id="no monitor"),
        pytest.param([BRANCH], 1, id="nothing behind"),
        pytest.param(["kernel_warmup(self)", BRANCH, MONITOR], 2, id="something before"),
        pytest.param(
            ["if self.use_v2_model_runner:\n    x = 1", BRANCH, MONITOR], 2, id="earlier if"
        ),
        pytest.param(
            [BRANCH, "os.environ['STARTED'] = '1'", MONITOR, END],
            1,
            id="started before the monitor",
        ),
        pytest.param(["if self.skip:\n    return 0.0", BRANCH, MONITOR, END], 2, id="early return"),
        pytest.param(
            [f"if self.use_v2_model_runner:\n    {V2}\nelse:\n    {V1}", MONITOR], 1, id="else"
        ),
        pytest.param(
            [MANY_ARMS, MONITOR],
            1,
            id="more arms",
        ),
        pytest.param(
            [NESTED, MONITOR],
            1,
            id="nested",
        ),
        pytest.param(
            [f"if self.use_v2_model_runner:\n    {V2}", f"if last:\n    {V1}", MONITOR],
            2,
            id="two branches",
        ),
        pytest.param([f"if self.use_v2_model_runner: {V2}", MONITOR], 1, id="on one line"),
        pytest.param(
            [f"if self.use_v2_model_runner:\n    {V2}\n    return 1.0", MONITOR, END],
            1,
            id="the V2 arm returns",
        ),
        pytest.param(
            [f"for _ in range(2):{indent(BRANCH, '    ')}"],
            1,
            id="in a loop",
        ),
        pytest.param(
            [f"if self.use_v2_model_runner:\n    {V2}\n# to the end\nelse:\n    {V1}\n    # of it"],
            1,
            id="comments in the arms",
        ),
    ],
)
def test_the_call_goes_right_behind_the_branch(parts: list[str], place: int) -> None:
    before = module(*parts)
    rewrites(rewrite, before, imported(module(*parts[:place], CALL, *parts[place:])))
    assert edit(before.encode()).outcome.status is Status.EDIT


def test_the_call_goes_into_the_block_that_the_monitor_is_in() -> None:
    inside = indent(dedent(f"{BRANCH}\nmonitor.activate_jit_monitor()"), "    ")
    before = module(f"with self.mode():{inside}", END)
    after = module(
        "with self.mode():"
        + inside.replace(
            "\n\n    monitor", "\n" + indent(CALL, "    ").rstrip() + "\n\n    monitor"
        ),
        END,
    )
    rewrites(rewrite, before, imported(after))


@pytest.mark.parametrize(
    "imports",
    [
        "from .gpu.warmup import warmup_kernels",
        "from vllm.v1.worker.gpu.warmup import warmup_kernels",
        "from acme.vllm.v1.worker.gpu.warmup import warmup_kernels",
        "from .gpu.warmup import a_first, warmup_kernels",
    ],
)
def test_the_function_joins_the_import_of_v2s(imports: str) -> None:
    before = module(BRANCH, MONITOR, imports=imports)
    after = module(BRANCH, CALL, MONITOR, imports=imports)
    rewrites(rewrite, before, after.replace("warmup_kernels\n", f"warmup_kernels, {FUNCTION}\n", 1))


def test_an_import_in_lines_gets_a_line() -> None:
    lines = "from .gpu.warmup import (\n    other,  # why\n    warmup_kernels,  # V2\n)"
    before = module(BRANCH, imports=lines)
    after = module(BRANCH, CALL, imports=lines.replace("\n)", f"\n    {FUNCTION},\n)"))
    rewrites(rewrite, before, after)


@pytest.mark.parametrize(
    "imports",
    [
        "from .gpu.warmup import warmup_kernels as wk",
        "from .gpu.warmup import warmup_kernels as wk  # V2",
        "from .gpu.warmup import (\n    warmup_kernels as wk,\n)",
    ],
)
def test_beside_an_alias_it_gets_an_import_of_its_own(imports: str) -> None:
    branch = BRANCH.replace("warmup_kernels(", "wk(")
    before = module(branch, MONITOR, imports=f"{imports}\nfrom .utils import request_memory")
    own = f"{imports}\nfrom .gpu.warmup import {FUNCTION}\nfrom .utils import request_memory"
    rewrites(rewrite, before, module(branch, CALL, MONITOR, imports=own))


@pytest.mark.parametrize(
    "imports",
    [
        "import vllm",
        "if TYPE_CHECKING:\n    from .gpu.warmup import warmup_kernels",
        "from .gpu.warmups import warmup_kernels",
        "from .gpu.warmup import *",
        "def f():\n    from .gpu.warmup import warmup_kernels",
    ],
)
def test_where_there_is_no_such_import_it_is_beside_the_call(imports: str) -> None:
    call = CALL.replace(
        f"    {FUNCTION}(", f"    from .gpu.warmup import {FUNCTION}\n\n    {FUNCTION}("
    )
    before = module(BRANCH, MONITOR, imports=imports)
    rewrites(rewrite, before, module(BRANCH, call, MONITOR, imports=imports))


def test_a_class_that_knows_no_v2_gets_no_guard() -> None:
    branch = f"if get_pp_group().is_last_rank:\n    {V1}"
    call = f"""
        # Compile the slot mapping kernel before the first request.
        from .gpu.warmup import {FUNCTION}

        {FUNCTION}(self.model_runner)
        """
    before = module(branch, MONITOR, imports="import vllm")
    rewrites(rewrite, before, module(branch, call, MONITOR, imports="import vllm"))


def test_a_class_that_knows_v2_elsewhere_gets_the_guard() -> None:
    rest = "\n    def other(self):\n        return self.use_v2_model_runner\n"
    branch = f"if get_pp_group().is_last_rank:\n    {V1}"
    before = module(branch, MONITOR, rest=rest)
    rewrites(rewrite, before, imported(module(branch, CALL, MONITOR, rest=rest)))


@pytest.mark.parametrize(
    ("test", "flag"),
    [
        ("self.use_v2", "self.use_v2"),
        ("use_v2_runner", "use_v2_runner"),
        ("self.config.v2", "self.config.v2"),
        ("self.use_v2 and self.x", "self.use_v2"),
    ],
)
def test_a_flag_of_another_name_guards_the_call(test: str, flag: str) -> None:
    branch = BRANCH.replace("self.use_v2_model_runner", test)
    before = module(branch, MONITOR)
    call = CALL.replace("self.use_v2_model_runner", flag)
    rewrites(rewrite, before, imported(module(branch, call, MONITOR)))


@pytest.mark.parametrize(
    "test",
    [
        "self.runner_kind == RunnerKind.V2",
        "self.runner_kind == V2",
        "self.runner_kind is Kind.V2",
        "self.is_v2()",
        "is_v2(self)",
        "isinstance(self.model_runner, runner_v2)",
        "self.kinds['v2']",
        "self.kind in {V2}",
        "version >= 2",
        "self.modern",
    ],
)
def test_a_test_that_is_no_flag_is_refused(test: str) -> None:
    one = refusal(module(BRANCH.replace("self.use_v2_model_runner", test), MONITOR))
    assert one.reason is Reason.NO_ANCHOR
    assert "to tell the V2 runner from V1" in one.detail
    assert test in one.detail


def test_a_flag_that_is_called_is_refused() -> None:
    text = module(BRANCH.replace("self.use_v2_model_runner", "self.use_v2_model_runner()"), MONITOR)
    assert refusal(text).reason is Reason.NO_ANCHOR


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["pass"], "found neither"),
        (["kernel_warmup(self)", MONITOR], "found neither"),
        (["# warmup_kernels()\npass"], "found neither"),
        (["def later():\n    warmup_kernels(1)", MONITOR], "found neither"),
        ([MONITOR, BRANCH, END], "is activated before or within"),
        ([f"{BRANCH.strip()}\n    activate_jit_monitor()", END], "is activated before or within"),
        (
            [f"if self.use_v2_model_runner:\n    {V2}\nelse:\n    {V1}\n    return 1.0", MONITOR],
            "can leave the method",
        ),
        (
            [f"if self.use_v2_model_runner:\n    {V2}\nelif last:\n    raise E\nelse:\n    {V1}"],
            "can leave the method",
        ),
    ],
)
def test_a_method_without_a_place_is_refused(parts: list[str], message: str) -> None:
    one = refusal(module(*parts))
    assert one.reason is Reason.NO_ANCHOR
    assert message in one.detail
    assert one.line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class Worker:\n    def other(self):\n        pass\n",
        "def compile_or_warm_up_model(self):\n    warmup_kernels(1)\n",
        module(BRANCH).replace("compile_or_warm_up_model", "compile_or_warm_up"),
    ],
)
def test_a_module_without_the_method_is_refused(text: str) -> None:
    one = refusal(text)
    assert one.reason is Reason.NO_ANCHOR
    assert "--skip worker" in one.detail


def test_a_method_that_is_defined_twice_is_refused() -> None:
    text = module(BRANCH, MONITOR)
    again = text.split("class Worker:\n")[1]
    one = refusal(f"{text}\n{again}")
    assert one.reason is Reason.AMBIGUOUS
    assert "line 7" in one.detail


def test_the_worker_is_taken_before_its_subclasses() -> None:
    other = (
        "\n\nclass OtherWorker(Worker):\n    def compile_or_warm_up_model(self):\n        pass\n"
    )
    rewrites(
        rewrite,
        module(BRANCH, MONITOR, rest=other),
        imported(module(BRANCH, CALL, MONITOR, rest=other)),
    )


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([BRANCH, CALL, MONITOR], id="our own form"),
        pytest.param(
            [
                f"if self.use_v2_model_runner:\n    {V2}\nelse:\n    {FUNCTION}(self.model_runner)",
                MONITOR,
            ],
            id="in the V1 arm",
        ),
        pytest.param(
            [
                BRANCH,
                f"from .gpu import warmup\n\n{dedent(CALL).strip()}".replace(
                    f" {FUNCTION}(", f" warmup.{FUNCTION}("
                ),
                MONITOR,
            ],
            id="through the module",
        ),
    ],
)
def test_a_call_that_is_there_is_left_alone(parts: list[str]) -> None:
    text = imported(module(*parts))
    leaves_alone(rewrite, text)
    one = edit(text.encode()).outcome
    assert (one.status, one.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)
    assert one.line == next(
        number for number, line in enumerate(text.splitlines(), 1) if f"{FUNCTION}(" in line
    )


def test_a_call_behind_the_monitor_is_refused() -> None:
    one = refusal(imported(module(BRANCH, MONITOR, CALL)))
    assert one.reason is Reason.NOT_REACHED
    assert "warms up after the monitor is active" in one.detail or "on a path without" in one.detail


@pytest.mark.parametrize(
    "mention", [f"# {FUNCTION}(self.model_runner)", f"x = '{FUNCTION}()'", f"y = {FUNCTION}"]
)
def test_a_mention_is_no_call(mention: str) -> None:
    before = module(BRANCH, f"{mention}\nz = 1", MONITOR)
    rewrites(rewrite, before, imported(module(BRANCH, CALL, f"{mention}\nz = 1", MONITOR)))


def test_a_call_of_a_function_that_is_not_there_is_refused() -> None:
    text = imported(module(BRANCH, CALL, MONITOR)).encode()
    with pytest.raises(Refusal, match="which does not define it") as caught:
        worker_edit.edit(worker_file(text), OURS, sources("another"))
    assert caught.value.reason is Reason.NOT_REACHED


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="BOM"),
        pytest.param(lambda data: b"# coding: latin-1\n# \xe9\n" + data, id="latin-1"),
        pytest.param(lambda data: data.replace(b"    ", b"\t"), id="tabs"),
        pytest.param(lambda data: data.replace(b"    ", b"  "), id="two spaces"),
        pytest.param(lambda data: data.rstrip(), id="no last line end"),
        pytest.param(lambda data: data + b"\n# the end\n", id="comment at the end"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n", 3), id="mixed line ends"),
    ],
)
def test_what_is_in_the_file_stays(change: object) -> None:
    assert callable(change)
    for text in (
        module(BRANCH, MONITOR, END),
        fork("00-monitor-in-utils").tree.inside[WORKER].decode(),
    ):
        was = change(text.encode())
        now = rewrite(was)
        assert now.count(f"{FUNCTION}(self.model_runner)".encode()) == 1
        sound(rewrite, was, now)


def test_the_line_of_the_outcome_is_the_calls() -> None:
    edited = edit(module(BRANCH, MONITOR).encode())
    assert edited.module is not None
    after = edited.module.bytes
    one = edited.outcome_on_its_line(module(BRANCH, MONITOR).encode(), after)
    assert one.line is not None
    assert f"{FUNCTION}(self.model_runner)".encode() in after.splitlines()[one.line - 1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class Worker:", f"{FUNCTION} = None\n\n\nclass Worker:"),
        ("class Worker:", f"def {FUNCTION}(runner):\n    pass\n\n\nclass Worker:"),
        ("        if self.use_v2", f"        {FUNCTION} = None\n        if self.use_v2"),
    ],
)
def test_a_worker_that_binds_our_name_itself_is_refused(before: str, after: str) -> None:
    source = fork("00-monitor-in-utils").tree.inside[WORKER].decode()
    assert before in source
    file = worker_file(source.replace(before, after, 1).encode())
    with pytest.raises(Refusal, match="for something of its own") as refused:
        worker_edit.edit(file, OURS, sources(FUNCTION))
    assert refused.value.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "started",
    ['os.environ["ACME_ENGINE_STARTED"] = "1"', "self.engine_started = True", "mark_started()"],
)
def test_an_engine_declared_started_before_the_branch_is_refused(started: str) -> None:
    source = fork("00-monitor-in-utils").tree.inside[WORKER].decode()
    place = "        kernel_warmup(self)\n"
    assert place in source
    file = worker_file(source.replace(place, f"{place}        {started}\n", 1).encode())
    with pytest.raises(Refusal, match="started before the V1/V2 warm-up branch") as refused:
        worker_edit.edit(file, OURS, sources(FUNCTION))
    assert refused.value.reason is Reason.NO_ANCHOR


@pytest.mark.parametrize("test", ["self.use_v2_model_runner", "self.use_v2 and self.x"])
def test_a_call_in_the_arm_of_v2_alone_is_refused(test: str) -> None:
    call = f"if {test}:\n    {FUNCTION}(self.model_runner)"
    one = refusal(module(BRANCH, call, MONITOR))
    assert one.reason is Reason.NOT_REACHED
    assert "for the V2 runner alone" in one.detail


def test_two_helpers_that_warm_are_not_one_that_does_the_work() -> None:
    helpers = f"\n    def v2(self):\n        return {V2}\n"
    helpers += f"\n    def v1(self):\n        {V1}\n        return 1\n"
    text = module("if self.use_v2:\n    return self.v2()", "return self.v1()", rest=helpers)
    assert "returns with the warm-up" in refusal(text).detail


def test_an_import_that_may_fail_is_refused() -> None:
    imports = "try:\n    from .gpu.warmup import warmup_kernels\nexcept ImportError:\n    pass"
    assert "ignores a failed import" in refusal(module(BRANCH, MONITOR, imports=imports)).detail


def test_a_monitor_behind_a_function_of_the_module_is_seen() -> None:
    watch = "\n\ndef watch():\n    from vllm.triton_utils.jit_monitor import activate\n"
    watch += "\n    activate()\n"
    assert "activated before" in refusal(module("watch()", BRANCH, END, rest=watch)).detail
