"""What must hold of a change, whichever recipe made it."""

from __future__ import annotations

import pytest

from codemods.engine.plan import FileChange
from codemods.engine.soundness import Unsound, require_sound
from tests.plans import plan_of

GOOD = b"a = 1\n"


def change(before: bytes, after: bytes, path: str = "a.py") -> FileChange:
    return FileChange(path, before, after, ("table",))


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


def test_an_unsound_change_is_named() -> None:
    changes = [change(GOOD, GOOD, "z.py"), change(b"a = 1\r", b"a = 2\r")]
    with pytest.raises(Unsound, match=r"a\.py: parsing it"):
        require_sound(plan_of(changes=changes))


def test_what_is_no_python_is_not_asked() -> None:
    require_sound(plan_of(changes=[change(b"a,b\r", b"a,c\r", "v.dist-info/RECORD")]))
