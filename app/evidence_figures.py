"""Figures of an explanation: the waterfall from 0 to the score, neighbours that carry it facing each other, the difference to a rival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app import text
from app.palette import GRAPH, POINTS, RIGHT, UNKNOWN, WRONG
from engine.datasets.knowledge_graph import Side
from engine.explanation import Aligned, Decomposition, NeighbourPair, Part

ALIGNED: Final[Mapping[Aligned, tuple[str, str]]] = {
    "this pair": ("solid", "the pair itself"),
    "seed": ("solid", "seed link"),
    "added": ("solid", "added in a round"),
    "predicted": ("dash", "matched by this run"),
    "elsewhere": ("dot", "not matched with each other"),
}
"""How a line looks, and what it stands for."""
WIDEST: Final = 9.0  # pixels, of the pair that carries the most
THINNEST: Final = 1.0
ROW_HEIGHT: Final = 34
LEFT, ACROSS, RIGHT_END = 0.0, 1.0, 0.5  # where entities stand, and where the line is pointed at


def part_words(part: Part) -> str:
    """A part's name as short as a bar allows."""
    if part.channel is None:
        return part.name
    return f"{part.channel} {part.layer}{': proxies' if part.kind == 'proxies' else ''}"


def waterfall(found: Decomposition) -> go.Figure:
    """All parts of a CSLS score in their order, and the score at the end."""
    bars = [*((part_words(part), part.value) for part in found.parts)]
    return _waterfall(bars, "CSLS", found.csls)


def difference_waterfall(parts: Sequence[Part], total: float) -> go.Figure:
    """What the parts of one pair's score have over another's."""
    return _waterfall([(part_words(part), part.value) for part in parts], "difference", total)


def _waterfall(bars: Sequence[tuple[str, float]], end: str, total: float) -> go.Figure:
    fig = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[text.figure_label(name) for name, _ in bars] + [end],
            x=[value for _, value in bars] + [total],
            measure=["relative"] * len(bars) + ["total"],
            text=[f"{value:+.3f}" for _, value in bars] + [f"{total:.3f}"],
            textposition="outside",
            cliponaxis=False,
            increasing={"marker": {"color": RIGHT}},
            decreasing={"marker": {"color": WRONG}},
            totals={"marker": {"color": UNKNOWN}},
            connector={"line": {"width": 1, "dash": "dot"}},
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    fig.update_yaxes(autorange="reversed", type="category")
    reached = np.cumsum([0.0, *(value for _, value in bars)])
    room = 0.18 * (reached.max() - reached.min())  # for the figures at the bars' ends
    fig.update_xaxes(title="share of the score", zeroline=True, range=[reached.min() - (room if reached.min() < 0 else 0.0), reached.max() + room])
    fig.update_layout(showlegend=False)
    return fig


def waterfall_height(bars: int) -> int:
    return 110 + 26 * bars


def facing_pairs(pairs: Sequence[NeighbourPair]) -> tuple[go.Figure, int]:
    """Neighbours of the source at the left, of the target at the right, and between them what each pair carries; also the height in pixels."""
    rows: dict[Side, dict[int, int]] = {"source": {}, "target": {}}
    for pair in pairs:
        for side, entity in (("source", pair.source), ("target", pair.target)):
            rows[side].setdefault(entity.index, len(rows[side]))  # type: ignore[index]
    fig, most = go.Figure(), max((abs(pair.value) for pair in pairs), default=1.0) or 1.0
    named: set[Aligned] = set()
    for pair in pairs:
        ends = rows["source"][pair.source.index], rows["target"][pair.target.index]
        dash, words = ALIGNED[pair.aligned]
        fig.add_scatter(
            x=[LEFT, RIGHT_END, ACROSS],
            y=[ends[0], sum(ends) / 2, ends[1]],
            mode="lines",
            line={"width": max(WIDEST * abs(pair.value) / most, THINNEST), "dash": dash, "color": RIGHT if pair.value >= 0 else WRONG},
            name=words,
            legendgroup=words,
            showlegend=pair.aligned not in named,
            hovertemplate=f"{text.figure_label(pair.source.title, 40)} with {text.figure_label(pair.target.title, 40)}<br>"
            f"{pair.value:+.3f}, {words}<extra></extra>",
        )
        named.add(pair.aligned)
    for side, place, anchor in (("source", LEFT, "middle left"), ("target", ACROSS, "middle right")):
        _entities(fig, pairs, rows[side], side, place, anchor)  # type: ignore[index, arg-type]
    tallest = max(len(found) for found in rows.values())
    fig.update_yaxes(visible=False, range=[tallest - 0.4, -0.6])
    fig.update_xaxes(visible=False, range=[-0.95, 1.95])
    return fig, 90 + ROW_HEIGHT * tallest


def _entities(fig: go.Figure, pairs: Sequence[NeighbourPair], rows: Mapping[int, int], side: Side, place: float, anchor: str) -> None:
    """One side's column of entities."""
    entities = {one.index: one for pair in pairs for one in (pair.source if side == "source" else pair.target,)}
    fig.add_scatter(
        x=[place] * len(rows),
        y=list(rows.values()),
        mode="markers+text",
        text=[text.figure_label(entities[index].title, 26) for index in rows],
        textposition=anchor,
        marker={"color": GRAPH[side], "symbol": POINTS[side], "size": 9},
        hovertext=[text.figure_label(entities[index].title, 100) for index in rows],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )


def part_table(parts: Sequence[Part]) -> pd.DataFrame:
    """Parts as a table for the download."""
    rows = [{"part": part.name, "kind": part.kind, "channel": part.channel, "layer": part.layer, "value": part.value} for part in parts]
    return pd.DataFrame(rows)
