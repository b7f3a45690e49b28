"""What a kernel's body stores, and that all but a small language is unreadable."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.recipes.slot_mapping.facts.kernel_body import (
    Array,
    Budget,
    NotCompiled,
    Unreadable,
    evaluate,
)

VALUES = 10_000
SIGNATURE = "out, numbers, count, N: tl.constexpr = 4"


def stored(body: str, *, programs: int = 1, lanes: int = 8, count: int = 3) -> dict[int, int]:
    """What a kernel of that body stores in `out`; `numbers` holds 10, 11, 12, 13."""
    source = f"def kernel({SIGNATURE}):\n{textwrap.indent(body, '    ')}\n"
    kernel = ast.parse(source).body[0]
    assert isinstance(kernel, ast.FunctionDef)
    out, numbers = Array({}, (4,)), Array({i: 10 + i for i in range(4)}, (4,))
    given = {"out": out, "numbers": numbers, "count": count, "N": 4}
    evaluate(kernel, given, programs, lanes, Budget(VALUES))
    return out.values


LANES = "at = tl.arange(0, N)\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("tl.store(out, 5)", {0: 5}),
        ("tl.store(out + tl.program_id(0), tl.num_programs(0))", {0: 2, 1: 2}),
        (LANES + "tl.store(out + at, at * 2, mask=at < 2)", {0: 0, 1: 2}),
        (LANES + "tl.store(out + at, tl.load(numbers + at, at < 1, 7), at < 2)", {0: 10, 1: 7}),
        (LANES + "tl.store(out + at, tl.where(at > 1, 1, at).to(tl.int64), at > 1)", {2: 1, 3: 1}),
        ("if count == 3:\n    return\ntl.store(out, 1)", {}),
        ("for i in range(0, count, 2):\n    tl.store(out + i, i)", {0: 0, 2: 2}),
        ("count += 1\ntl.store(out, tl.cdiv(count, 3))", {0: 2}),
        ("tl.store(out, tl.minimum(count, 2) + tl.maximum(count, 2))", {0: 5}),
        ("tl.store(out, (count // 2) | (count % 2) & 1)", {0: 1}),
        ("count = 4\n" + LANES.replace("N", "count") + "tl.store(out + at, 0, at == 3)", {3: 0}),
    ],
)  # fmt: skip
def test_what_a_body_stores(body: str, expected: dict[int, int]) -> None:
    assert stored(body, programs=2) == expected


def test_the_first_lanes_alone_can_be_looked_at() -> None:
    assert stored(LANES + "tl.store(out + at, at)", lanes=2) == {0: 0, 1: 1}


@pytest.mark.parametrize(
    "body",
    [
        "tl.store(out, count / 2)",
        "tl.store(out, (0 - count) // 2)",
        "tl.store(out, (0 - count) % 2)",
        "tl.store(out, None)",
        "tl.store(out, tl.load(numbers + 9))",
        "tl.store(out, tl.load(numbers, mask=count < 0))",
        "tl.store(out, 1, mask=tl.load(numbers + 9))",
        "tl.store(out + tl.load(numbers + 9), 1)",
        "tl.store(count, 1)",
        "tl.store(out, missing)",
        "tl.store(out, count.to(tl.float32))",
        "tl.store(out, tl.sqrt(count))",
        "tl.store(out, tl._experimental(count))",
        "tl.store(out, tl.cdiv(count, 0))",
        "tl.store(out, 0 < count < 9)",
        "tl.store(*out)",
        "tl.atomic_add(out, 1)",
        "tl.program_id(1)",
        "helper(out)",
        "while count:\n    count = 0",
        "return count",
        "first, second = count, count",
        "for i in tl.range(0, count):\n    tl.store(out, i)",
        "for i in range(10**9):\n    tl.store(out, i)",
        "tl.arange(0, 1099511627776)",
        "for i in range(90):\n    count = count * count",
        LANES + "if at == 0:\n    tl.store(out, 1)",
        LANES + "tl.store(out + at, tl.arange(0, 2))",
        LANES + "tl.store(out + at[None, :], 1)",
        "tl.store(out, tl.cdiv(0 - count, 4))",
        "at = tl.arange(0, 8)\nfor i in range(400):\n    at = at + at % 2 + at % 2",
    ],
)
def test_what_is_not_known_is_unreadable(body: str) -> None:
    with pytest.raises(Unreadable):
        stored(body)


def test_many_programs_are_unreadable() -> None:
    with pytest.raises(Unreadable):
        stored("tl.store(out, 1)", programs=10**9)


def test_the_ends_of_arange_are_constants() -> None:
    with pytest.raises(NotCompiled, match="found count, a parameter"):
        stored("tl.arange(0, count)")


@pytest.mark.parametrize("body", ["count = 3\ntl.arange(0, count)", "tl.arange(0, N)"])
def test_a_constant_is_an_end_of_arange(body: str) -> None:
    assert stored(body) == {}


def test_a_parameter_that_is_one_is_made_a_constant() -> None:
    assert stored("tl.arange(0, count)", count=1) == {}


def test_a_function_that_triton_does_not_have_is_not_compiled() -> None:
    with pytest.raises(NotCompiled, match=r"found tl\.program_number, which"):
        stored("tl.store(out, tl.program_number(0))")


CHANGED = "row = {before}\nif {test}:\n    row = {value}\ntl.store(out, 1)"


def test_a_number_does_not_become_a_block_in_an_if_of_the_programs_own() -> None:
    body = CHANGED.format(before="tl.program_id(0)", test="row == 0", value="tl.arange(0, N)")
    with pytest.raises(NotCompiled, match="found row, which is a block on one way"):
        stored(body)


@pytest.mark.parametrize(
    ("before", "test", "value"),
    [
        ("tl.program_id(0)", "row == 0", "7"),
        ("tl.program_id(0)", "N == 4", "tl.arange(0, N)"),
        ("tl.program_id(0)", "count == 3", "tl.arange(0, N)"),
        ("tl.arange(0, N)", "tl.load(numbers) == 10", "tl.arange(0, N)"),
    ],
)
def test_what_an_if_may_change(before: str, test: str, value: str) -> None:
    assert stored(CHANGED.format(before=before, test=test, value=value)) == {0: 1}
