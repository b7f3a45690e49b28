"""A run is made in every way that unknown values allow, and never by a guess."""

from __future__ import annotations

import pytest

from codemods.prove.unknown import MOST_WAYS, Choices, NotKnownError, Unknown, every_way


def ways(body, **known):  # type: ignore[no-untyped-def]
    """The answers and results of all runs of `body`, which is given an unknown `config`."""
    choices = Choices(known=known)
    return dict(every_way(lambda made: body(Unknown("config", made)), choices))


def test_a_run_that_asks_nothing_is_made_once() -> None:
    assert ways(lambda _: 1) == {"": 1}


def test_each_question_is_answered_both_ways() -> None:
    found = ways(lambda config: (bool(config.eager), bool(config.pooling)))
    assert sorted(found.values()) == [(a, b) for a in (False, True) for b in (False, True)]
    assert "`config.eager` is True and `config.pooling` is False" in found


def test_a_question_asked_again_has_the_same_answer() -> None:
    found = ways(lambda config: (bool(config.eager), bool(config.eager)))
    assert sorted(found.values()) == [(False, False), (True, True)]


def test_a_second_question_is_asked_only_where_the_first_leads_to_it() -> None:
    assert len(ways(lambda config: bool(config.a) and bool(config.b))) == 3


def test_a_comparison_is_a_question() -> None:
    assert len(ways(lambda config: 1 if config.size > 4 else 2)) == 2


def test_what_is_known_is_no_question() -> None:
    assert ways(lambda config: bool(config.eager), **{"config.eager": True}) == {"": True}


def test_a_value_that_may_be_none_is_asked_about() -> None:
    choices = Choices(maybe_none=frozenset({"connector"}))
    found = dict(
        every_way(lambda made: Unknown("config", made).connector is None, choices),
    )
    assert sorted(found.values()) == [False, True]


@pytest.mark.parametrize("use", [range, int, float, lambda one: [1, 2][one]])
def test_a_number_is_never_guessed(use) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(NotKnownError, match=r"config\.size"):
        ways(lambda config: use(config.size))


def test_too_many_questions_are_refused() -> None:
    def body(config):  # type: ignore[no-untyped-def]
        return [bool(getattr(config, f"a{i}")) for i in range(MOST_WAYS)]

    with pytest.raises(NotKnownError, match="every way"):
        ways(body)


def test_writing_is_noted() -> None:
    choices = Choices()
    value = Unknown("config", choices)
    value.size = 3
    value.rows[0] = 1
    value.buffer.zero_()
    assert choices.written == ["config.size", "config.rows", "config.buffer"]
