"""What must hold of a change, whichever recipe made it."""

from __future__ import annotations

import pytest

from codemods.engine.plan import FileChange
from codemods.engine.soundness import Unsound, breaks, require_sound
from tests.plans import plan_of

GOOD = b"a = 1\n"
BROKEN = b"a = = 1\n"


def change(before: bytes, after: bytes, path: str = "a.py") -> FileChange:
    return FileChange(path, before, after, ("table",))


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [(GOOD, BROKEN, True), (GOOD, GOOD, False), (BROKEN, BROKEN, False), (BROKEN, GOOD, False)],
)
def test_only_what_was_python_can_be_broken(before: bytes, after: bytes, broken: bool) -> None:
    assert breaks(change(before, after)) is broken


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GOOD, b"a = 2\n"),
        (b"", GOOD),
        (b"\xef\xbb\xbfa = 1\r\n", b"\xef\xbb\xbfa = 2\r\n"),
        (b"# coding: latin-1\nx = '\xe9'\n", b"# coding: latin-1\nx = '\xe9'\ny = 1\n"),
    ],
)
def test_a_sound_change_goes_on(before: bytes, after: bytes) -> None:
    require_sound(plan_of(changes=[change(before, after)]))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [(GOOD, BROKEN, "a.py: the rewritten file"), (b"a = 1\r", b"a = 2\r", "a.py: parsing it")],
)
def test_an_unsound_change_is_named(before: bytes, after: bytes, message: str) -> None:
    with pytest.raises(Unsound, match=message):
        require_sound(plan_of(changes=[change(GOOD, GOOD, "z.py"), change(before, after)]))


def test_what_is_no_python_is_not_asked() -> None:
    require_sound(plan_of(changes=[change(b"a,b\r", BROKEN, "v.dist-info/RECORD")]))
