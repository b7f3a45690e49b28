"""Known statements, found and taken out in whichever shape a source has them."""

from __future__ import annotations

import pytest

from codemods.transforms.known_text import statements, without

TEXT = """\
if not {flag}:
    # Why.
    f()

    g({{}})
"""
KNOWN = statements(TEXT, 1, flag=r"\w+")
OURS = "\n    if not a:\n        # Why.\n        f()\n\n        g({})\n"
BEFORE = "def h():\n    x = 1\n"


@pytest.mark.parametrize("after", ["", "    y = 1\n", "\n\ndef i():\n    pass\n", "# The end.\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t", "  "])
def test_what_is_around_it_stays(after: str, end: str, indent: str) -> None:
    code, rest = (
        text.replace("    ", indent).replace("\n", end)
        for text in (BEFORE + OURS + after, BEFORE + after)
    )
    assert without(code, indent, KNOWN) == rest


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_source_without_a_last_line_end_stays_so(end: str) -> None:
    code, rest = (text.replace("\n", end).rstrip() for text in (BEFORE + OURS, BEFORE))
    assert without(code, "    ", KNOWN) == rest


def test_it_goes_wherever_it_is() -> None:
    assert without(BEFORE + OURS + "    y = 1\n" + OURS, "    ", KNOWN) == BEFORE + "    y = 1\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Why.", "Why!"),
        ("\n    if", "    if"),  # no empty line above
        ("not a:", "not a.b:"),
        ("        f()", "         f()"),
        ("f()\n\n", "f()\n"),
        ("g({})", "g({}) "),
        ("g({})\n", "g({})\n        i()\n"),
        ("g({})\n", "g({})\n\n        # More.\n"),
        ("g({})\n", "g({})\n    else:\n        i()\n"),
        ("g({})\n", "g({})\n    elif b:\n        i()\n"),
    ],
)
def test_what_differs_is_left(old: str, new: str) -> None:
    changed = BEFORE + OURS.replace(old, new, 1)
    assert changed != BEFORE + OURS
    assert without(changed, "    ", KNOWN) == changed
