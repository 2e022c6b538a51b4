"""Figures of an explanation: the waterfall from 0 to the score, and the difference to a rival, in groups that open into their parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app import text
from app.palette import NEUTRAL, OPPOSE, SUPPORT
from engine.explanation import ScorePart
from engine.explanation.summary import ScoreGroup, capital, group_name

BAR_LENGTH: Final = 44  # letters of a bar's name
ROOM: Final = 0.2  # of the figure's width, for the numbers at the bars' ends
KINDS: Final[Mapping[str, str]] = {"own relations": "", "neighbours": "", "proxy correction": ": proxy matching"}


@dataclass(frozen=True)
class Bar:
    """A step of a waterfall. ``neutral``: drawn in grey, because it is no evidence about the pair itself."""

    name: str
    value: float
    neutral: bool = False


def part_words(part: ScorePart) -> str:
    """A part's name as short as a bar allows."""
    if part.channel is None:
        return capital(part.name)
    hop = "input" if not part.layer else "1 hop" if part.layer == 1 else f"{part.layer} hops"
    return f"{part.channel.capitalize()} channel, {hop}{KINDS[group_name(part)]}"


def part_bars(parts: Sequence[ScorePart]) -> list[Bar]:
    """A bar for each part."""
    return [Bar(part_words(part), part.value, part.kind == "hubness") for part in parts]


def group_bars(groups: Sequence[ScoreGroup], opened: Collection[str] = ()) -> list[Bar]:
    """A bar for each group, and for each part of those that are opened."""
    bars: list[Bar] = []
    for group in groups:
        whole = Bar(capital(group.name), group.value, group.name == "hubness correction")
        bars += part_bars(group.parts) if group.name in opened else [whole]
    return bars


def waterfall(bars: Sequence[Bar], end: str, total: float, note: str = "") -> go.Figure:
    """Bars that add up to a score, or to the difference of two, and the sum at the end; ``note`` follows its number in brackets."""
    values = np.array([bar.value for bar in bars])
    reached = np.concatenate([[0.0], np.cumsum(values)])
    names = [*(text.figure_label(bar.name, BAR_LENGTH) for bar in bars), text.figure_label(end, BAR_LENGTH)]
    fig = go.Figure(
        go.Bar(
            orientation="h",
            y=names,
            x=[*values.tolist(), total],
            base=[*reached[:-1].tolist(), 0.0],
            text=[*(f"{value:+.3f}".replace("-", "−") for value in values), f"{total:.3f}".replace("-", "−") + (f" ({note})" if note else "")],
            textposition="outside",
            cliponaxis=False,
            marker={
                "color": [*(NEUTRAL if bar.neutral else SUPPORT if bar.value >= 0 else OPPOSE for bar in bars), NEUTRAL],
                "pattern": {"shape": [*("." if bar.neutral else "/" if bar.value < 0 else "" for bar in bars), ""]},
            },
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    for row, place in enumerate(reached[1:].tolist()):
        fig.add_shape(type="line", x0=place, x1=place, y0=row, y1=row + 1, line={"width": 1, "dash": "dot", "color": NEUTRAL}, layer="below")
    low, high = min(reached.min(), total), max(reached.max(), total)
    room = ROOM * (high - low)
    fig.update_yaxes(autorange="reversed", type="category", title=None)
    fig.update_xaxes(title="Contribution to CSLS", zeroline=True, range=[low - (room if low < 0 else 0.0), high + room])
    fig.update_layout(showlegend=False)
    return fig


def spoken(bars: Sequence[Bar], end: str, total: float) -> str:
    """A waterfall's numbers, for those who do not see it: 'Neighbours +1.295; ...; CSLS 0.512.'"""
    return "; ".join([*(f"{bar.name} {text.signed(bar.value)}" for bar in bars), f"{end} {text.signed(total)}"]) + "."


def waterfall_height(bars: int) -> int:
    return 110 + 26 * bars


def part_table(parts: Sequence[ScorePart]) -> pd.DataFrame:
    """Parts as a table for the download."""
    rows = [
        {"group": group_name(part), "part": part.name, "kind": part.kind, "channel": part.channel, "layer": part.layer, "value": part.value}
        for part in parts
    ]
    return pd.DataFrame(rows)
