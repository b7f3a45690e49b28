"""A bar chart as SVG: the first request before and after, with the spread of its runs."""

from __future__ import annotations

from dataclasses import dataclass

from validation_results import Spread

LEFT, RIGHT, TOP = 150, 215, 56
BAR, GAP = 13, 12
WIDTH = 760
BEFORE, AFTER = "#d1495b", "#2a9d8f"
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px}"
    ".title{font-size:15px;font-weight:600}.axis,.error{stroke:#8c959f}"
    ".error{stroke:#1f2328;stroke-width:1.2}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.error{stroke:#e6edf3}}"
)


@dataclass(frozen=True)
class Bars:
    """One comparison: its label, both sides' times, and what they show."""

    label: str
    before: Spread
    after: Spread
    so: str


def chart(rows: list[Bars]) -> str:
    """The rows from the top down."""
    longest = max(max(row.before.high, row.after.high) for row in rows)
    scale = (WIDTH - LEFT - RIGHT) / longest
    step = 2 * BAR + GAP
    height = TOP + step * len(rows) + 12
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" '
            'aria-label="Time of the first request before and after the rewrite">'
        ),
        f"<style>{STYLE}</style>",
        (
            f'<text x="{LEFT}" y="20" class="title">First request of a new server, ms: median, '
            "lowest and highest</text>"
        ),
        *legend(),
        f'<line x1="{LEFT}" y1="{TOP - 6}" x2="{LEFT}" y2="{height - 8}" class="axis"/>',
    ]
    for place, row in enumerate(rows):
        y = TOP + place * step
        lines.append(f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end">{row.label}</text>')
        lines += bar(y, row.before, scale, BEFORE)
        lines += bar(y + BAR, row.after, scale, AFTER)
        end = LEFT + max(row.before.high, row.after.high) * scale
        lines.append(f'<text x="{end + 8:.1f}" y="{y + BAR + 4}" class="small">{row.so}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def legend() -> list[str]:
    lines = []
    for x, colour, text in ((LEFT, BEFORE, "as released"), (LEFT + 110, AFTER, "rewritten")):
        lines.append(f'<rect x="{x}" y="30" width="11" height="11" fill="{colour}"/>')
        lines.append(f'<text x="{x + 16}" y="40" class="small">{text}</text>')
    return lines


def bar(y: float, value: Spread, scale: float, colour: str) -> list[str]:
    width = max(1.0, value.median * scale)
    low, high, middle = LEFT + value.low * scale, LEFT + value.high * scale, y + (BAR - 1) / 2
    return [
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 1}" fill="{colour}"/>',
        (
            f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 3}v6M{high:.1f} '
            f'{middle - 3}v6" class="error"/>'
        ),
    ]
