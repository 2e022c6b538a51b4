"""Line charts as SVG text, without any package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

# Distinguishable without full colour vision, and by their dashes in print.
STYLES = (("#0072b2", ""), ("#d55e00", "7 3"), ("#009e73", "2 3"), ("#cc79a7", "10 3 2 3"), ("#555555", "4 2"))
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 420, 260, 52, 34, 44, 70
LEGEND = 26
TICKS = 5


@dataclass(frozen=True)
class Curve:
    """A name and its points, in the order in which they are joined."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Panel:
    """Curves over one x axis. Both axes begin at 0; the y axis is shared by all panels of a chart."""

    x_label: str
    curves: Sequence[Curve]


def draw(title: str, y_label: str, panels: Sequence[Panel]) -> str:
    """A chart: panels side by side, with one legend below; a curve's style goes by its place."""
    width = len(panels) * (LEFT + WIDTH) + (len(panels) - 1) * (GAP - LEFT) + 20
    height = TOP + HEIGHT + BOTTOM + LEGEND
    top = max((y for panel in panels for curve in panel.curves for _, y in curve.points), default=0.0)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({LEFT + number * (WIDTH + GAP)} {TOP})">', *draw_panel(panel, y_label, top), "</g>"]
    if panels:
        parts += draw_legend([curve.name for curve in panels[0].curves], TOP + HEIGHT + BOTTOM + 14)
    return "\n".join([*parts, "</svg>"])


def draw_panel(panel: Panel, y_label: str, top: float) -> list[str]:
    """Axes, grid and curves, with the origin of coordinates in the upper left corner of the plot."""
    x_ticks = ticks(max((x for curve in panel.curves for x, _ in curve.points), default=0.0))
    y_ticks = ticks(top)

    def place(point: Point) -> tuple[float, float]:
        return WIDTH * point[0] / x_ticks[-1], HEIGHT - HEIGHT * point[1] / y_ticks[-1]

    parts = []
    for value in y_ticks:
        _, y = place((0, value))
        parts.append(f'<path d="M0 {y:.1f}H{WIDTH}" stroke="#dddddd"/><text x="-6" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in x_ticks:
        x, _ = place((value, 0))
        parts.append(f'<path d="M{x:.1f} {HEIGHT}v4" stroke="#333333"/><text x="{x:.1f}" y="{HEIGHT + 18}" text-anchor="middle">{value:g}</text>')
    for number, curve in enumerate(panel.curves):
        colour, dashes = STYLES[number % len(STYLES)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, curve.points))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes or "none"}"/>')
    return [
        *parts,
        f'<path d="M0 0V{HEIGHT}H{WIDTH}" fill="none" stroke="#333333"/>',
        f'<text x="{WIDTH / 2:g}" y="{HEIGHT + 36}" text-anchor="middle">{escape(panel.x_label)}</text>',
        f'<text transform="translate(-38 {HEIGHT / 2:g}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>',
    ]


def draw_legend(names: Sequence[str], y: float) -> list[str]:
    """A dash of each style and its name."""
    parts, x = [], float(LEFT)
    for number, name in enumerate(names):
        colour, dashes = STYLES[number % len(STYLES)]
        parts.append(f'<path d="M{x:.0f} {y - 4:.0f}h28" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes or "none"}"/>')
        parts.append(f'<text x="{x + 34:.0f}" y="{y:.0f}">{escape(name)}</text>')
        x += 34 + 8 * len(name) + 24
    return parts


def ticks(most: float) -> list[float]:
    """Round values from 0 to at least ``most``, ``TICKS`` or a few more."""
    if not most > 0:
        return [0.0, 1.0]
    rough = most / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * (1 - 1e-9))
    return [round(step * number, 12) for number in range(math.ceil(most / step - 1e-9) + 1)]
