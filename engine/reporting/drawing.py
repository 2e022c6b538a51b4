"""Figures as SVG that is drawn here: no library, no script, readable in light and dark and on a phone, each with a name for screen readers.

Colours are classes, which the page's style sheet fills; every series also has a shape or a dash of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.reporting.markup import Html, element, shown

WIDTH: Final = 380
LEFT: Final = 118
RIGHT: Final = 48
ROW: Final = 24
TOP: Final = 8
BELOW: Final = 34
LABEL: Final = 17
"""Characters of a label that fit to the left of the axis."""
SQUARE: Final = 260


@dataclass(frozen=True)
class Mark:
    """A share with its interval, each from 0 to 1; ``text`` is written next to it."""

    value: float
    low: float
    high: float
    text: str = ""


def canvas(title: str, description: str, height: float, *parts: object) -> Html:
    """A drawing with its name."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_label=f"{title}. {description}",
        xmlns="http://www.w3.org/2000/svg",
    )


def svg_text(text: str, x: float, y: float, anchor: str = "start", kind: str | None = None, longest: int = 60) -> Html:
    """A text in a drawing, cut where it is long."""
    return element("text", shown(text, longest), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


def stroke(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def point(x: float, y: float, series: int) -> Html:
    """A circle for the first series, a diamond for the second."""
    if series == 0:
        return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="4", class_="series1")
    return element("path", d=f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z", class_="series2")


def interval_figure(title: str, description: str, rows: Sequence[tuple[str, Sequence[Mark | None]]], axis: str) -> Html:
    """Shares from 0% to 100% with their intervals, a row for each label.

    Args:
        rows: label, and a mark of each series; None where a series has none.
        axis: what is measured.
    """
    height = TOP + ROW * len(rows) + BELOW
    bottom, room = TOP + ROW * len(rows), WIDTH - LEFT - RIGHT
    parts: list[Html] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + share * room
        parts += [stroke(x, TOP, x, bottom, "grid"), svg_text(f"{share:.0%}", x, bottom + 14, "middle", "tick")]
    parts.append(svg_text(axis, LEFT + room / 2, bottom + 28, "middle", "tick"))
    for place, (name, marks) in enumerate(rows):
        middle = TOP + ROW * (place + 0.5)
        parts.append(svg_text(name, LEFT - 6, middle + 4, "end", longest=LABEL))
        spread = 4 if len(marks) > 1 else 0
        for series, mark in enumerate(marks):
            if mark is None:
                continue
            y = middle + (series * 2 - 1) * spread if spread else middle
            parts += [
                stroke(LEFT + mark.low * room, y, LEFT + mark.high * room, y, f"whisker{series + 1}"),
                point(LEFT + mark.value * room, y, series),
            ]
            if mark.text and not spread:
                parts.append(svg_text(mark.text, WIDTH - 2, y + 4, "end", "tick"))
    return canvas(title, description, height, *parts)


def bar_figure(title: str, description: str, rows: Sequence[tuple[str, float, str]], axis: str) -> Html:
    """Bars from zero to the right, or to the left of it where values are negative.

    Args:
        rows: label, value, text.
        axis: what is measured.
    """
    bottom, room = TOP + ROW * len(rows), WIDTH - LEFT - RIGHT
    low, high = min(0.0, *(value for _, value, _ in rows)), max(0.0, *(value for _, value, _ in rows))
    scale = room / max(high - low, 1e-9)
    zero = LEFT - low * scale
    parts = [stroke(zero, TOP, zero, bottom, "axis"), svg_text(axis, LEFT + room / 2, bottom + 16, "middle", "tick")]
    for place, (name, value, text) in enumerate(rows):
        middle = TOP + ROW * (place + 0.5)
        start = zero + min(value, 0.0) * scale
        parts += [
            svg_text(name, LEFT - 6, middle + 4, "end", longest=LABEL),
            element("rect", x=f"{start:.1f}", y=f"{middle - 7:.1f}", width=f"{max(abs(value) * scale, 0.5):.1f}", height="14", class_="bar"),
            svg_text(text, WIDTH - 2, middle + 4, "end", "tick"),
        ]
    return canvas(title, description, bottom + BELOW - 10, *parts)


def reliability_figure(title: str, description: str, points: Sequence[tuple[float, Mark]]) -> Html:
    """Shares of correct pairs over their mean probability, with intervals; on the diagonal both are the same."""
    left, top = 58.0, TOP + 14.0
    bottom = top + SQUARE

    def place(across: float, up: float) -> tuple[float, float]:
        return left + across * SQUARE, bottom - up * SQUARE

    parts = [stroke(*place(0, 0), *place(1, 1), "diagonal")]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [stroke(*place(0, share), *place(1, share), "grid"), svg_text(f"{share:.0%}", left - 6, place(0, share)[1] + 4, "end", "tick")]
        parts.append(svg_text(f"{share:.0%}", place(share, 0)[0], bottom + 14, "middle", "tick"))
    for mean, mark in points:
        parts += [stroke(*place(mean, mark.low), *place(mean, mark.high), "whisker1"), point(*place(mean, mark.value), 0)]
    parts += [
        svg_text("Mean probability", left + SQUARE / 2, bottom + 30, "middle", "tick"),
        svg_text("Share correct", left, TOP + 2, "start", "tick"),
    ]
    return canvas(title, description, bottom + BELOW, *parts)
