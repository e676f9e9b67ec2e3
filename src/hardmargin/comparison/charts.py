"""Charts as SVG, in the colours of the page: they follow its light and dark style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

#: Sizes in pixels.
ROW, LABEL, PLOT, PAD = 26, 190, 420, 14

#: Classes of the page's style for lines, one after the other.
LINES = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9")


def intervals(rows: Sequence[tuple[str, float, float, float, bool]], unit: str, title: str) -> str:
    """Draw a dot and its interval per row.

    Parameters
    ----------
    rows : sequence of (name, value, low, high, is_ours)
        What to draw.
    unit : str
        Of the values.
    title : str
        What a screen reader says.
    """
    low, high = min(r[2] for r in rows), max(r[3] for r in rows)
    span = (high - low) or 1.0
    low, high = max(low - 0.08 * span, 0.0), high + 0.08 * span
    lines = []

    def x(value: float) -> float:
        return LABEL + PAD + (value - low) / (high - low) * PLOT

    height = ROW * len(rows) + 34
    for tick in _ticks(low, high):
        lines.append(
            f'<line class="grid" x1="{x(tick):.1f}" y1="4" x2="{x(tick):.1f}" '
            f'y2="{height - 28}"/><text class="tick" x="{x(tick):.1f}" y="{height - 10}" '
            f'text-anchor="middle">{tick:g}{escape(unit)}</text>'
        )
    for k, (name, value, least, most, is_ours) in enumerate(rows):
        y = ROW * k + ROW / 2 + 4
        kind = "ours" if is_ours else "other"
        lines.append(
            f'<text x="{LABEL}" y="{y + 4:.1f}" text-anchor="end" class="{kind}">{escape(name)}'
            f'</text><line class="bar {kind}" x1="{x(least):.1f}" x2="{x(most):.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/><circle class="dot {kind}" cx="{x(value):.1f}" '
            f'cy="{y:.1f}" r="4.5"><title>{escape(name)}: {value:.2f}{escape(unit)}, '
            f"{least:.2f} to {most:.2f}</title></circle>"
        )
    return _svg(LABEL + PLOT + 2 * PAD + 16, height, title, lines)


def bars(rows: Sequence[tuple[str, float, str, bool]], title: str, *, log: bool = False) -> str:
    """Draw a bar per row, with its value beside it.

    Parameters
    ----------
    rows : sequence of (name, value, text, is_ours)
        What to draw; the text is printed.
    title : str
        What a screen reader says.
    log : bool
        Whether lengths are those of logarithms.
    """
    known = [value for _, value, _, _ in rows if value > 0] or [1.0]
    least = min(known) / 2 if log else 0.0

    def width(value: float) -> float:
        if log:
            top = math.log(max(known) / least) or 1.0
            return PLOT * 0.8 * math.log(max(value, least) / least) / top
        return PLOT * 0.8 * value / max(known)

    lines = []
    for k, (name, value, text, is_ours) in enumerate(rows):
        y, kind = ROW * k + 4, "ours" if is_ours else "other"
        end = LABEL + PAD + width(value)
        lines.append(
            f'<text x="{LABEL}" y="{y + 17}" text-anchor="end" class="{kind}">{escape(name)}</text>'
            f'<rect class="fill {kind}" x="{LABEL + PAD}" y="{y + 4}" rx="3" '
            f'width="{max(end - LABEL - PAD, 1):.1f}" height="{ROW - 8}"/>'
            f'<text class="tick" x="{end + 6:.1f}" y="{y + 17}">{escape(text)}</text>'
        )
    return _svg(LABEL + PLOT + 2 * PAD + 16, ROW * len(rows) + 10, title, lines)


def reliability_diagram(
    curves: Sequence[tuple[str, Sequence[tuple[float, float, int]]]], title: str
) -> str:
    """Draw how often probabilities came true: on the diagonal they are honest.

    Parameters
    ----------
    curves : sequence of (name, points)
        Points are mean probability, share that came true, number of rows.
    title : str
        What a screen reader says.
    """
    size, left, bottom = 320, 44, 34

    def at(p: float, q: float) -> str:
        return f"{left + p * size:.1f},{6 + (1 - q) * size:.1f}"

    lines = [f'<polyline class="grid dashed" points="{at(0, 0)} {at(1, 1)}"/>']
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + tick * size, 6 + (1 - tick) * size
        lines.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="6" y2="{6 + size}"/>'
            f'<line class="grid" x1="{left}" x2="{left + size}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{x:.1f}" y="{size + 24}" text-anchor="middle">{tick:g}</text>'
            f'<text class="tick" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    for (name, points), kind in zip(curves, LINES, strict=False):
        text = " ".join(at(p, q) for p, q, _ in points)
        lines.append(f'<polyline class="curve {kind}" points="{text}"/>')
        for p, q, n in points:
            across, up = at(p, q).split(",")
            lines.append(
                f'<circle class="{kind} mark" cx="{across}" cy="{up}" r="3"><title>{escape(name)}: '
                f"said {p:.2f}, came true {q:.2f} ({n} rows)</title></circle>"
            )
    for k, ((name, _), kind) in enumerate(zip(curves, LINES, strict=False)):
        y = 20 + 20 * k
        lines.append(
            f'<line class="curve {kind}" x1="{left + size + 22}" x2="{left + size + 44}" '
            f'y1="{y - 4}" y2="{y - 4}"/><text x="{left + size + 50}" y="{y}">{escape(name)}</text>'
        )
    return _svg(left + size + 210, size + bottom + 6, title, lines)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two others."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= 6:
            step *= factor
            break
    first = math.ceil(low / step)
    return [round(k * step, 10) for k in range(first, math.floor(high / step) + 1)]


def _svg(width: float, height: float, title: str, lines: Sequence[str]) -> str:
    body = "\n".join(lines)
    label = escape(title)
    # Narrow screens scroll a chart rather than shrink its text.
    return (
        f'<div class="box"><svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{label}" style="max-width: {width:.0f}px"><title>{label}</title>\n{body}\n'
        "</svg></div>"
    )
