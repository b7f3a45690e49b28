"""Landing as SVG: for each contender a bar of right, wrong and refused trees, by kind of tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEFT, GAP, TOP, BAR, STEP, PANEL = 196, 20, 86, 16, 24, 252
WIDTH = LEFT + 2 * PANEL + 2 * GAP
RIGHT_COLOUR, WRONG_COLOUR, REFUSED_COLOUR = "#2a9d8f", "#d1495b", "#b6bdc6"
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px}"
    ".title{font-size:15px;font-weight:600}.inside{font-size:11px;fill:#fff}"
    ".dark{font-size:11px;fill:#1f2328}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dark{fill:#1f2328}}"
)


@dataclass(frozen=True)
class Bar:
    """One contender's counts on one kind of tree."""

    right: int
    wrong: int
    refused: int


@dataclass(frozen=True)
class Panel:
    """A kind of tree, with a bar for each contender."""

    title: str
    bars: Sequence[Bar]


def chart(title: str, names: Sequence[str], panels: Sequence[Panel]) -> str:
    height = TOP + STEP * len(names) + 6
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<text x="12" y="20" class="title">{title}</text>',
        *_legend(),
    ]
    for place, name in enumerate(names):
        y = TOP + STEP * place + 13
        lines.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{name}</text>')
    for place, panel in enumerate(panels):
        x = LEFT + place * (PANEL + GAP)
        lines.append(f'<text x="{x}" y="{TOP - 10}">{panel.title}</text>')
        for row, bar in enumerate(panel.bars):
            lines += _bar(bar, x, TOP + STEP * row)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend() -> Iterator[str]:
    entries = (
        (12, RIGHT_COLOUR, "right"),
        (76, WRONG_COLOUR, "wrong, but reported as success"),
        (292, REFUSED_COLOUR, "refused"),
    )
    for x, colour, text in entries:
        yield f'<rect x="{x}" y="33" width="11" height="11" fill="{colour}"/>'
        yield f'<text x="{x + 16}" y="43" class="small">{text}</text>'


def _bar(bar: Bar, left: float, y: int) -> Iterator[str]:
    scale = PANEL / max(1, bar.right + bar.wrong + bar.refused)
    x = left
    parts = (
        (bar.right, RIGHT_COLOUR, "inside"),
        (bar.wrong, WRONG_COLOUR, "inside"),
        (bar.refused, REFUSED_COLOUR, "dark"),
    )
    for count, colour, style in parts:
        if not count:
            continue
        width = count * scale
        yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
        middle = f'x="{x + width / 2:.1f}" y="{y + 12}" text-anchor="middle"'
        yield f'<text {middle} class="{style}">{count}</text>'
        x += width
