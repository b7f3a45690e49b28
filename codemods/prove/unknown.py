"""Values that a proof does not know, and every way a run can go that asks about them.

An engine's configuration decides what a warm-up does. Where the warm-up reads a value that the
proof does not have, it gets an `Unknown`. Where it asks whether that is true, `Choices` answers,
and `every_way` runs the warm-up again with the other answer. So both outcomes of a condition run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

MOST_WAYS = 64


class NotKnownError(Exception):
    """The tree's code needs the value of something that a proof does not know."""


@dataclass
class Choices:
    """The answers of one run: `given` in the order of the questions, and no for any further one.

    `known` are values by path; an unknown value named in `maybe_none` may also be None. `written`
    collects what the run has written to.
    """

    given: tuple[bool, ...] = ()
    known: Mapping[str, Any] = field(default_factory=dict)
    maybe_none: frozenset[str] = frozenset()
    asked: dict[str, bool] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def answer(self, question: str) -> bool:
        if question not in self.asked:
            place = len(self.asked)
            self.asked[question] = self.given[place] if place < len(self.given) else False
        return self.asked[question]

    def value(self, path: str) -> Any:
        """What is at a path: a known value, None, or an unknown one."""
        if path in self.known:
            return self.known[path]
        if path.rpartition(".")[2] in self.maybe_none and self.answer(f"{path} is None"):
            return None
        return Unknown(path, self)

    def __str__(self) -> str:
        return " and ".join(f"`{asked}` is {answer}" for asked, answer in self.asked.items())


Result = TypeVar("Result")


def every_way(run: Callable[[Choices], Result], choices: Choices) -> Iterator[tuple[str, Result]]:
    """Run once for each combination of answers, with what was answered and what came of it.

    Raises NotKnownError where there are more than MOST_WAYS.
    """
    pending: list[tuple[bool, ...]] = [()]
    for _ in range(MOST_WAYS):
        given = pending.pop()
        made = Choices(given, choices.known, choices.maybe_none)
        result = run(made)
        yield str(made), result
        answers = tuple(made.asked.values())
        pending += [(*answers[:at], not answers[at]) for at in range(len(given), len(answers))]
        if not pending:
            return
    raise NotKnownError(f"it asks too much to be run in every way: {made}")


class Unknown:
    """A value that is known by its path alone."""

    def __init__(self, path: str, choices: Choices) -> None:
        self.__dict__["_path"] = path
        self.__dict__["_choices"] = choices

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._choices.value(f"{self._path}.{name}")

    def __setattr__(self, name: str, _: Any) -> None:
        self._choices.written.append(f"{self._path}.{name}")

    def __getitem__(self, _: Any) -> Any:
        return Unknown(f"{self._path}[…]", self._choices)

    def __setitem__(self, _: Any, __: Any) -> None:
        self._choices.written.append(self._path)

    def __call__(self, *_: Any, **__: Any) -> Any:
        owner, _dot, name = self._path.rpartition(".")
        if name.endswith("_") and not name.startswith("_"):  # as torch names what writes in place
            self._choices.written.append(owner)
        return Unknown(f"{self._path}()", self._choices)

    def __bool__(self) -> bool:
        return bool(self._choices.answer(self._path))

    def __contains__(self, item: Any) -> bool:
        return bool(self._choices.answer(f"{item} in {self._path}"))

    def __len__(self) -> int:
        return int(self._choices.answer(f"len({self._path}) > 0"))

    def __iter__(self) -> Iterator[Any]:
        if self._choices.answer(f"len({self._path}) > 0"):
            yield self[0]

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __index__(self) -> int:
        raise NotKnownError(f"it uses {self._path} as a number, and no proof knows which")

    __int__ = __float__ = __index__

    def __repr__(self) -> str:
        return str(self._path)

    def __format__(self, _: str) -> str:
        return str(self._path)

    __hash__ = object.__hash__


def _operator(symbol: str) -> Callable[[Unknown, Any], Unknown]:
    def apply(self: Unknown, other: Any) -> Unknown:
        shown = repr(other)[:60]
        return Unknown(f"{self!r} {symbol} {shown}", self.__dict__["_choices"])

    return apply


for _name, _symbol in {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-",
    "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "and": "&", "or": "|",
    "radd": "+", "rsub": "-", "rmul": "*", "rfloordiv": "//", "rtruediv": "/",
}.items():  # fmt: skip
    setattr(Unknown, f"__{_name}__", _operator(_symbol))
