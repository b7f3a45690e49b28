"""By what the worker tells V2 from V1, and what it calls the runner."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile
from codemods.recipes.warm_up.anchor import find_anchor
from codemods.recipes.warm_up.method import Method, find_method
from codemods.recipes.warm_up.v2_flag import model_runner, v2_flag

BRANCH = """
if {test}:
    warmup_kernels(self.model_runner)
else:
    self.model_runner._dummy_sampler_run(x)
"""


def method(body: str, rest: str = "") -> Method:
    text = (
        "class Worker:\n    def compile_or_warm_up_model(self):\n"
        + indent(dedent(body), " " * 8)
        + indent(dedent(rest), " " * 4)
    )
    return find_method(SourceFile("gpu_worker.py", text.encode()))


def flag(body: str, rest: str = "") -> str | None:
    found = method(body, rest)
    return v2_flag(found, find_anchor(found))


@pytest.mark.parametrize(
    ("test", "rest", "expected"),
    [
        ("self.use_v2_model_runner", "", "self.use_v2_model_runner"),
        ("not self.use_v2_model_runner", "", "self.use_v2_model_runner"),
        ("self.use_v2", "", "self.use_v2"),
        ("self.use_v2 and not self.quiet", "", "self.use_v2"),
        ("self.quiet or self.config.use_v2", "", "self.config.use_v2"),
        ("use_v2", "", "use_v2"),
        ("self.quiet", "\ndef f(self):\n    return self.use_v2_model_runner\n", None),
        # A method of that name is no flag: its truth is always true.
        ("self.is_v2", "\ndef f(self):\n    return self.use_v2_model_runner()\n", "self.is_v2"),
    ],
)
def test_the_flag_is_what_the_branch_or_the_class_asks(
    test: str, rest: str, expected: str | None
) -> None:
    own = "self.use_v2_model_runner" if expected is None else expected
    assert flag(BRANCH.format(test=test), rest) == own


def test_a_class_that_knows_no_v2_has_none() -> None:
    assert flag("self.model_runner._dummy_sampler_run(x)\n") is None


@pytest.mark.parametrize("test", ["self.pick(2)", "self.version == 2", "self.v2_runner()"])
def test_a_test_that_names_no_flag_is_refused(test: str) -> None:
    with pytest.raises(Refusal, match="to tell the V2 runner from V1") as caught:
        flag(BRANCH.format(test=test))
    assert caught.value.reason is Reason.NO_ANCHOR
    assert caught.value.line == 4  # behind an empty one


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.model_runner._dummy_sampler_run(x)", "self.model_runner"),
        ("self.runner._dummy_run(1)\nself.runner.capture_model()", "self.runner"),
        ("self.v1.inner._dummy_run(1)", "self.v1.inner"),
        ("self.draft._dummy_run(1)\nself.model_runner._dummy_run(1)", "self.model_runner"),
        ("runner = self._runner\nrunner._dummy_run(1)", "self._runner"),
        ("runner = self.model_runner\nrunner._dummy_run(1)", "self.model_runner"),
        ("runner._dummy_run(self.model_runner)", "self.model_runner"),
        ("print(self.model_runner)", "self.model_runner"),
    ],
)
def test_the_runner_is_the_one_whose_dummy_runs_are_made(body: str, expected: str) -> None:
    assert model_runner(method(f"{body}\n")) == expected


@pytest.mark.parametrize(
    "body",
    [
        "self.b._dummy_run(1)\nself.a._dummy_run(1)\n",
        "runner = self.b\nif x:\n    runner = self.a\nrunner._dummy_run(1)\n",
    ],
)
def test_several_runners_are_ambiguous(body: str) -> None:
    with pytest.raises(Refusal, match=r"self\.a, self\.b") as caught:
        model_runner(method(body))
    assert caught.value.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "body", ["runner._dummy_run(1)", "pass", "runner = pick()\nrunner._dummy_run(1)"]
)
def test_a_runner_that_is_nowhere_is_not_made_up(body: str) -> None:
    with pytest.raises(Refusal, match=r"expected self\.model_runner") as caught:
        model_runner(method(f"{body}\n"))
    assert caught.value.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "test",
    [
        "self.disable_v2_runner",
        "not self.disable_v2_runner",
        "self.no_v2",
        "self.has_v2 and self.wants_v2",
        "self.use_v2_model_runner and not self.v2_unsupported",
    ],
)
def test_flags_whose_meaning_is_not_plain_are_refused(test: str) -> None:
    with pytest.raises(Refusal, match="cannot be read off the source") as caught:
        flag(BRANCH.format(test=test))
    assert caught.value.reason is Reason.AMBIGUOUS


def test_an_arm_of_another_runner_under_other_names_is_refused() -> None:
    other = "if self.use_new:\n    warm_all(self)\n"
    other += "elif last:\n    self.model_runner._dummy_sampler_run(x)\n"
    with pytest.raises(Refusal, match="to tell the V2 runner from V1"):
        flag(other)
