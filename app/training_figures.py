"""How a training goes: loss and validation by epoch, and where rounds began."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app import text
from app.palette import DIRECTION, RIGHT, UNKNOWN, VARIANT
from engine.jobs import News, Point, RoundNews

NARROW, LETTER = 255, 5.5  # pixels: of the figure's axis on a screen of 400, and of a letter of its labels
VALIDATION = (("hits_at_1", "Hits@1", RIGHT, "solid", "circle"), ("mrr", "MRR", DIRECTION["inverse"], "dash", "diamond"))


def curve_table(points: Sequence[Point]) -> pd.DataFrame:
    """The curve's points, a row an epoch."""
    return pd.DataFrame([vars(point) for point in points], columns=["epoch", "loss", "hits_at_1", "mrr"]).astype(float).astype({"epoch": int})


def round_table(rounds: Sequence[RoundNews]) -> pd.DataFrame:
    """A row a round, for people; "right" only where known links decide about pairs."""
    table = pd.DataFrame(
        [
            {
                "round": round_name(one),
                "after epoch": one.epoch,
                "pairs": one.selected,
                "new": one.new,
                "right": one.right / one.known if one.right is not None and one.known else None,
            }
            for one in rounds
        ]
    )
    return table.drop(columns=["right"]) if table["right"].isna().all() else table


def round_name(one: RoundNews) -> str:
    """'2'; pairs that training began with are from before the first round."""
    return str(one.number) if one.number else "start"


def labelled_rounds(rounds: Sequence[RoundNews], epochs: int) -> list[RoundNews]:
    """The rounds whose labels do not overlap on a narrow screen: the first, and of the others each that has room behind the one before."""
    found: list[RoundNews] = []
    free = -math.inf  # pixels, from which on nothing is written
    for one in rounds:
        left = NARROW * one.epoch / max(epochs, 1)
        if left >= free:
            found.append(one)
            free = left + LETTER * (len(round_label(one)) + 1)
    return found


def round_label(one: RoundNews) -> str:
    return text.figure_label(f"round {one.number}" if one.number else round_name(one))


def _rounds_of(epochs: Sequence[int], rounds: Sequence[RoundNews]) -> list[str]:
    """A line for the hover text of each epoch: the round that it belongs to; empty before the first."""
    return [next((f"<br>{round_label(one)}" for one in reversed(rounds) if one.number and one.epoch < epoch), "") for epoch in epochs]


def curve_figure(news: News, variant: str) -> go.Figure:
    """Loss above, validation below where there is any; a dotted line where a round began. Lines without a label have theirs in the hover text."""
    table = curve_table(news.points)
    validated = table.dropna(subset=["hits_at_1"])
    rows = 2 if len(validated) else 1
    fig = make_subplots(rows=rows, shared_xaxes=True, vertical_spacing=0.08)
    colour = VARIANT.get(variant, UNKNOWN)
    fig.add_scatter(
        x=table["epoch"],
        y=table["loss"],
        name="loss",
        mode="lines+markers",
        marker={"size": 4},
        line={"color": colour},
        customdata=_rounds_of(table["epoch"].tolist(), news.rounds),
        hovertemplate="epoch %{x}<br>loss %{y:.3f}%{customdata}<extra></extra>",
        row=1,
        col=1,
    )
    fig.update_yaxes(title="loss", row=1)
    for column, name, ink, dash, symbol in VALIDATION if rows == 2 else ():
        line, marker = {"color": ink, "dash": dash}, {"symbol": symbol, "size": 7}
        fig.add_scatter(x=validated["epoch"], y=validated[column], name=name, mode="lines+markers", line=line, marker=marker, row=2, col=1)
    if rows == 2:
        fig.update_yaxes(title="validation", row=2)
    labelled = labelled_rounds(news.rounds, news.epochs)
    for one in news.rounds:
        label = {"annotation_text": round_label(one), "annotation_font_size": 11} if one in labelled else {}
        fig.add_vline(x=one.epoch + 0.5, line={"dash": "dot", "width": 1, "color": UNKNOWN}, row=1, col=1, **label)
    fig.update_xaxes(title="epoch", range=[0, max(news.epochs, 1) + 0.5], row=rows)
    return fig


def curve_sentence(news: News, *, over: bool = False, measured: bool = True) -> str:
    """What the curve says so far, or of a training that is over, in one line.

    Args:
        measured: there are validation links.
    """
    first, last = news.points[0], news.points[-1]
    validated = [point for point in news.points if point.hits_at_1 is not None]
    words = f"Loss {text.score(first.loss)} → **{text.score(last.loss)}** in {text.count(last.epoch, 'epoch')}"
    if not validated and (over or not measured):
        return f"{words}. There are no validation links, so accuracy is not measured during training."
    if not validated:
        return f"{words}. Accuracy is measured on the validation links every few epochs; no value yet."
    begun = f"{text.score(validated[0].hits_at_1 or 0)} → " if len(validated) > 1 else ""
    return f"{words}; Hits@1 on the validation links {begun}**{text.score(validated[-1].hits_at_1 or 0)}**."
