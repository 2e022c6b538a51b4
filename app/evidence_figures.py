"""Figures of an explanation: the waterfall from 0 to the score, neighbours that carry it facing each other, the difference to a rival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app import text
from app.charts import ARROWS
from app.palette import GRAPH, POINTS, RIGHT, TIES, UNKNOWN, WRONG, TieLine
from engine.data.knowledge_graph import SIDES, Side
from engine.explanation import Aligned, NeighbourProduct, ScorePart
from engine.explanation.summary import capital
from engine.explore.neighbourhood import Edge
from engine.runs.entities import Entity, short_id
from engine.runs.view import status_words

ALIGNED: Final[Mapping[Aligned, TieLine]] = {
    "this pair": TIES["this pair"],
    "seed": TIES["seed link"],
    "added": TIES["added in a round"],
    "predicted": TIES["predicted"],
    "elsewhere": TIES["elsewhere"],
}
"""How a line looks, and its meaning."""
RELATION_LENGTH: Final = 22  # letters of the relations below an entity's name
WIDEST: Final = 9.0  # pixels, of the pair that carries the most
THINNEST: Final = 1.0
LEGEND_LINE = 2.5
ROW_HEIGHT: Final = 42
BAR_LENGTH: Final = 44  # letters of a bar's name
ALONG: Final = (0.5, 0.3, 0.7, 0.18, 0.82)  # where on its line a number may be
NUMBER_SIZE: Final = (0.17, 0.4)  # of a number, as parts of the line's length and of a row
LEFT, MIDDLE, ACROSS = 0.0, 0.5, 1.0  # where a line begins, can be pointed at, and ends


def part_words(part: ScorePart) -> str:
    """A part's name as short as a bar allows."""
    if part.channel is None:
        return capital(part.name)
    hop = "input" if not part.layer else "1 hop" if part.layer == 1 else f"{part.layer} hops"
    return f"{part.channel.capitalize()} channel, {hop}{': proxy matching' if part.kind == 'proxies' else ''}"


def part_bars(parts: Sequence[ScorePart]) -> list[tuple[str, float]]:
    """A bar for each part: its name and its value."""
    return [(part_words(part), part.value) for part in parts]


def waterfall(bars: Sequence[tuple[str, float]], csls: float) -> go.Figure:
    """Bars that add up to a CSLS score, and the score at the end."""
    return _waterfall(bars, "CSLS", csls)


def difference_waterfall(parts: Sequence[ScorePart], total: float) -> go.Figure:
    """What the parts of one pair's score have over another's."""
    return _waterfall(part_bars(parts), "Difference", total)


def _waterfall(bars: Sequence[tuple[str, float]], end: str, total: float) -> go.Figure:
    values = [value for _, value in bars]
    fig = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[*(text.figure_label(name, BAR_LENGTH) for name, _ in bars), end],
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
    fig.update_xaxes(title="Contribution to CSLS", zeroline=True, range=[reached.min() - (room if reached.min() < 0 else 0.0), reached.max() + room])
    fig.update_layout(showlegend=False)
    return fig


def waterfall_height(bars: int) -> int:
    return 110 + 26 * bars


def facing_pairs(pairs: Sequence[NeighbourProduct]) -> tuple[go.Figure, int]:
    """Neighbours of the source at the left, of the target at the right, each with its relations, and between them what each pair carries.

    Returns:
        The figure, with neighbours in the order of ``pairs`` from the top, and its height in pixels.
    """
    ends = {side: _in_rows(pair.source if side == "source" else pair.target for pair in pairs) for side in SIDES}
    rows = {side: {entity.index: row for row, entity in enumerate(found)} for side, found in ends.items()}
    heights = [(rows["source"][pair.source.index], rows["target"][pair.target.index]) for pair in pairs]
    fig, most = go.Figure(), max((abs(pair.value) for pair in pairs), default=1.0) or 1.0
    named: set[Aligned] = set()
    for pair, (one, two) in zip(pairs, heights, strict=True):
        line = ALIGNED[pair.aligned]
        fig.add_scatter(
            x=[LEFT, MIDDLE, ACROSS],
            y=[one, (one + two) / 2, two],
            mode="lines+markers" if pair.aligned == "this pair" else "lines",
            marker={"symbol": "square", "size": [0, 11, 0]},
            line={"width": max(WIDEST * abs(pair.value) / most, THINNEST), "dash": line.plotly, "color": RIGHT if pair.value >= 0 else WRONG},
            opacity=line.opacity,
            name=line.words,
            legendgroup=line.words,
            showlegend=False,
            hovertemplate=f"{text.figure_label(pair.source.title, 40)} with {text.figure_label(pair.target.title, 40)}<br>"
            f"{pair.value:+.3f}, {line.words}; {status_words(pair.verdict, pair.added)}<extra></extra>",
        )
        if pair.aligned not in named:
            _legend_entry(fig, line)
        named.add(pair.aligned)
    _values(fig, pairs, heights)
    relations = {side: {end.index: edges for end, edges in (_end(pair, side) for pair in pairs)} for side in SIDES}
    _entities(fig, ends["source"], relations["source"], LEFT, "middle left")
    _entities(fig, ends["target"], relations["target"], ACROSS, "middle right")
    tallest = max(len(found) for found in ends.values())
    fig.update_yaxes(visible=False, range=[tallest - 0.4, -0.6])
    fig.update_xaxes(visible=False, range=[-0.95, 1.95])
    return fig, 90 + ROW_HEIGHT * tallest


def _end(pair: NeighbourProduct, side: Side) -> tuple[Entity, tuple[Edge, ...]]:
    return (pair.source, pair.source_edges) if side == "source" else (pair.target, pair.target_edges)


def _legend_entry(fig: go.Figure, line: TieLine) -> None:
    """A thin line in the legend: the dashes of a thick one are longer than the legend has room for, so that all would look alike."""
    fig.add_scatter(
        x=[None],
        y=[None],
        mode="lines",
        line={"width": LEGEND_LINE, "dash": line.plotly, "color": RIGHT},
        opacity=line.opacity,
        name=line.words,
        legendgroup=line.words,
    )


def _values(fig: go.Figure, pairs: Sequence[NeighbourProduct], heights: Sequence[tuple[int, int]]) -> None:
    """The number of each line on it, where no other number is if there is such a place."""
    places: list[tuple[float, float]] = []
    for one, two in heights:
        possible = [(part, one + (two - one) * part) for part in ALONG]
        places.append(max(possible, key=lambda place: (min((_apart(place, taken) for taken in places), default=1.0) >= 1.0, -abs(place[0] - MIDDLE))))
    fig.add_scatter(
        x=[place[0] for place in places],
        y=[place[1] for place in places],
        mode="text",
        text=[f"{pair.value:+.3f}" for pair in pairs],
        textposition="top center",
        textfont={"size": 11},
        hoverinfo="skip",
        showlegend=False,
    )


def _apart(one: tuple[float, float], two: tuple[float, float]) -> float:
    """How far two numbers are from each other; from 1 on they do not touch."""
    return max(abs(one[0] - two[0]) / NUMBER_SIZE[0], abs(one[1] - two[1]) / NUMBER_SIZE[1])


def _relation_words(edges: Sequence[Edge]) -> str:
    """The relations to a neighbour, seen from the entity in the middle; the end of each identifier, and how many more there are."""
    if not edges:
        return "itself"
    more = f" +{len(edges) - 1}" if len(edges) > 1 else ""
    return f"{ARROWS[edges[0].direction]} {text.figure_label(short_id(edges[0].relation), RELATION_LENGTH)}{more}"


def _in_rows(entities: Iterable[Entity]) -> list[Entity]:
    """Each once, in the order of their first appearance: one below the other."""
    return list({entity.index: entity for entity in entities}.values())


def _entities(fig: go.Figure, entities: Sequence[Entity], relations: Mapping[int, Sequence[Edge]], place: float, anchor: str) -> None:
    """One side's column of entities, below each name its relations."""
    side = entities[0].side
    fig.add_scatter(
        x=[place] * len(entities),
        y=list(range(len(entities))),
        mode="markers+text",
        text=[f"{text.figure_label(entity.title, 26)}<br><sub>{_relation_words(relations[entity.index])}</sub>" for entity in entities],
        textposition=anchor,
        marker={"color": GRAPH[side], "symbol": POINTS[side], "size": 9},
        hovertext=[text.figure_label(entity.title, 100) for entity in entities],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )


def part_table(parts: Sequence[ScorePart]) -> pd.DataFrame:
    """Parts as a table for the download."""
    rows = [{"part": part.name, "kind": part.kind, "channel": part.channel, "layer": part.layer, "value": part.value} for part in parts]
    return pd.DataFrame(rows)
