"""A bar chart as SVG: the first request's latency, before and after, release by release."""

from __future__ import annotations

LEFT, RIGHT, TOP = 78, 90, 56
BAR, GAP = 13, 12
WIDTH = 680
BEFORE, AFTER = "#d1495b", "#2a9d8f"
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px}"
    ".title{font-size:15px;font-weight:600}.axis{stroke:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}"
)


def chart(bars: list[tuple[str, float, float]]) -> str:
    """`bars` are (label, ms before, ms after), from the top down."""
    longest = max(max(before, after) for _, before, after in bars)
    scale = (WIDTH - LEFT - RIGHT) / longest
    step = 2 * BAR + GAP
    height = TOP + step * len(bars) + 12
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" '
        'aria-label="Latency of the first request before and after the rewrite">'
    )
    lines = [
        head,
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="20" class="title">First request of a fresh server, ms</text>',
        *legend(),
        f'<line x1="{LEFT}" y1="{TOP - 6}" x2="{LEFT}" y2="{height - 8}" class="axis"/>',
    ]
    for place, (label, before, after) in enumerate(bars):
        y = TOP + place * step
        lines.append(f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end">{label}</text>')
        lines += bar(y, before, scale, BEFORE)
        lines += bar(y + BAR, after, scale, AFTER)
    return "\n".join([*lines, "</svg>"]) + "\n"


def legend() -> list[str]:
    lines = []
    for x, colour, told in ((LEFT, BEFORE, "as released"), (LEFT + 110, AFTER, "rewritten")):
        lines.append(f'<rect x="{x}" y="30" width="11" height="11" fill="{colour}"/>')
        lines.append(f'<text x="{x + 16}" y="40" class="small">{told}</text>')
    return lines


def bar(y: float, value: float, scale: float, colour: str) -> list[str]:
    width = max(1.0, value * scale)
    return [
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 1}" fill="{colour}"/>',
        f'<text x="{LEFT + width + 6:.1f}" y="{y + BAR - 3}" class="small">{value:.0f}</text>',
    ]
