"""Landing as SVG: for each contender one bar of right, wrong and refused trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEFT, RIGHT, TOP, BAR, STEP, WIDTH = 196, 12, 62, 16, 24, 700
RIGHT_COLOUR, WRONG_COLOUR, REFUSED_COLOUR = "#2a9d8f", "#d1495b", "#b6bdc6"
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px}"
    ".title{font-size:15px;font-weight:600}.inside{font-size:11px;fill:#fff}"
    ".dark{font-size:11px;fill:#1f2328}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dark{fill:#1f2328}}"
)


@dataclass(frozen=True)
class Bar:
    """One contender's counts."""

    name: str
    right: int
    wrong: int
    refused: int


def chart(bars: Sequence[Bar], title: str) -> str:
    height = TOP + STEP * len(bars) + 6
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<text x="12" y="20" class="title">{title}</text>',
        *_legend(),
    ]
    for place, bar in enumerate(bars):
        lines += _bar(bar, TOP + STEP * place)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend() -> list[str]:
    lines = []
    entries = (
        (12, RIGHT_COLOUR, "right"),
        (76, WRONG_COLOUR, "wrong, but reported as success"),
        (272, REFUSED_COLOUR, "refused"),
    )
    for x, colour, text in entries:
        lines.append(f'<rect x="{x}" y="33" width="11" height="11" fill="{colour}"/>')
        lines.append(f'<text x="{x + 16}" y="43" class="small">{text}</text>')
    return lines


def _bar(bar: Bar, y: int) -> list[str]:
    scale = (WIDTH - LEFT - RIGHT) / max(1, bar.right + bar.wrong + bar.refused)
    lines = [f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{bar.name}</text>']
    x = float(LEFT)
    parts = (
        (bar.right, RIGHT_COLOUR, "inside"),
        (bar.wrong, WRONG_COLOUR, "inside"),
        (bar.refused, REFUSED_COLOUR, "dark"),
    )
    for count, colour, style in parts:
        if not count:
            continue
        width = count * scale
        lines.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
        )
        lines.append(
            f'<text x="{x + width / 2:.1f}" y="{y + 12}" text-anchor="middle" '
            f'class="{style}">{count}</text>'
        )
        x += width
    return lines
