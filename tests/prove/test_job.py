"""An answer counts for one question, and only in the shape of a row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codemods.prove.job import NoAnswerError, Question, proof_from
from codemods.prove.proof import ProofStatus, passed

QUESTION = Question("token", "keys", "", [])
ANSWER = {"name": "keys", "token": "token", "status": "pass", "detail": "Well.", "figures": {}}


def answered(**changes: Any) -> bytes:
    return json.dumps({**ANSWER, **changes}).encode()


def test_an_answer_is_the_row() -> None:
    figures = {"one": 1, "half": 0.5, "word": "x"}
    found = proof_from(answered(figures=figures), QUESTION)
    assert found == passed("keys", "Well.", one=1, half=0.5, word="x")
    assert proof_from(answered(status="skipped"), QUESTION).status is ProofStatus.SKIPPED


@pytest.mark.parametrize("changes", [{"name": "gpu-cost"}, {"token": "other"}, {"token": None}])
def test_an_answer_to_another_question_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(NoAnswerError, match="another question"):
        proof_from(answered(**changes), QUESTION)


@pytest.mark.parametrize(
    "answer",
    [
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        answered() + answered(),
        answered(status="perfect"),
        answered(detail=None),
        answered(detail="x" * 20_000),
        answered(figures=[]),
        answered(figures={"x": None}),
        answered(figures={"x": True}),
        answered(figures={"x": float("inf")}),
        answered(figures={str(number): 1 for number in range(2_000)}),
    ],
    ids=lambda answer: ascii(answer[:20]),
)
def test_what_is_no_row_is_none(answer: bytes) -> None:
    with pytest.raises(NoAnswerError) as caught:
        proof_from(answer, QUESTION)
    assert "\n" not in str(caught.value)


def test_nothing_is_no_answer() -> None:
    with pytest.raises(NoAnswerError, match="did not answer"):
        proof_from(b"", QUESTION)
