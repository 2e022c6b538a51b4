"""Figures of an explanation: the waterfall from 0 to the score, neighbours that carry it facing each other, the difference to a rival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app import text
from app.palette import GRAPH, POINTS, RIGHT, UNKNOWN, WRONG
from engine.datasets.knowledge_graph import SIDES
from engine.entities import Entity
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
LEFT, MIDDLE, ACROSS = 0.0, 0.5, 1.0  # where a line begins, can be pointed at, and ends


def part_words(part: Part) -> str:
    """A part's name as short as a bar allows."""
    if part.channel is None:
        return part.name
    return f"{part.channel} {part.layer}{': proxies' if part.kind == 'proxies' else ''}"


def waterfall(found: Decomposition) -> go.Figure:
    """All parts of a CSLS score in their order, and the score at the end."""
    return _waterfall(found.parts, "CSLS", found.csls)


def difference_waterfall(parts: Sequence[Part], total: float) -> go.Figure:
    """What the parts of one pair's score have over another's."""
    return _waterfall(parts, "difference", total)


def _waterfall(parts: Sequence[Part], end: str, total: float) -> go.Figure:
    values = [part.value for part in parts]
    fig = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[*(text.figure_label(part_words(part)) for part in parts), end],
            x=[*values, total],
            measure=["relative"] * len(values) + ["total"],
            text=[*(f"{value:+.3f}" for value in values), f"{total:.3f}"],
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
    reached = np.cumsum([0.0, *values])
    room = 0.18 * (reached.max() - reached.min())  # for the figures at the bars' ends
    fig.update_xaxes(title="share of the score", zeroline=True, range=[reached.min() - (room if reached.min() < 0 else 0.0), reached.max() + room])
    fig.update_layout(showlegend=False)
    return fig


def waterfall_height(bars: int) -> int:
    return 110 + 26 * bars


def facing_pairs(pairs: Sequence[NeighbourPair]) -> tuple[go.Figure, int]:
    """Neighbours of the source at the left, of the target at the right, and between them what each pair carries; also the height in pixels."""
    ends = {side: _in_rows(pair.source if side == "source" else pair.target for pair in pairs) for side in SIDES}
    rows = {side: {entity.index: row for row, entity in enumerate(found)} for side, found in ends.items()}
    fig, most = go.Figure(), max((abs(pair.value) for pair in pairs), default=1.0) or 1.0
    named: set[Aligned] = set()
    for pair in pairs:
        heights = rows["source"][pair.source.index], rows["target"][pair.target.index]
        dash, words = ALIGNED[pair.aligned]
        fig.add_scatter(
            x=[LEFT, MIDDLE, ACROSS],
            y=[heights[0], sum(heights) / 2, heights[1]],
            mode="lines",
            line={"width": max(WIDEST * abs(pair.value) / most, THINNEST), "dash": dash, "color": RIGHT if pair.value >= 0 else WRONG},
            name=words,
            legendgroup=words,
            showlegend=pair.aligned not in named,
            hovertemplate=f"{text.figure_label(pair.source.title, 40)} with {text.figure_label(pair.target.title, 40)}<br>"
            f"{pair.value:+.3f}, {words}<extra></extra>",
        )
        named.add(pair.aligned)
    _entities(fig, ends["source"], LEFT, "middle left")
    _entities(fig, ends["target"], ACROSS, "middle right")
    tallest = max(len(found) for found in ends.values())
    fig.update_yaxes(visible=False, range=[tallest - 0.4, -0.6])
    fig.update_xaxes(visible=False, range=[-0.95, 1.95])
    return fig, 90 + ROW_HEIGHT * tallest


def _in_rows(entities: Iterable[Entity]) -> list[Entity]:
    """Each once, in the order of their first appearance: one below the other."""
    return list({entity.index: entity for entity in entities}.values())


def _entities(fig: go.Figure, entities: Sequence[Entity], place: float, anchor: str) -> None:
    """One side's column of entities."""
    side = entities[0].side
    fig.add_scatter(
        x=[place] * len(entities),
        y=list(range(len(entities))),
        mode="markers+text",
        text=[text.figure_label(entity.title, 26) for entity in entities],
        textposition=anchor,
        marker={"color": GRAPH[side], "symbol": POINTS[side], "size": 9},
        hovertext=[text.figure_label(entity.title, 100) for entity in entities],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )


def part_table(parts: Sequence[Part]) -> pd.DataFrame:
    """Parts as a table for the download."""
    rows = [{"part": part.name, "kind": part.kind, "channel": part.channel, "layer": part.layer, "value": part.value} for part in parts]
    return pd.DataFrame(rows)
