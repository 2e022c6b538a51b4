"""Rates of several runs over each other: by degree and by relation, with intervals; and what was gained and lost by degree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app import cache, text
from app.cache import OpenRun
from app.palette import RIGHT, UNKNOWN, WRONG, run_styles
from app.state import AddressError, Rate
from engine.analysis.entities import bucket_names
from engine.explore.comparison import Difference

RATES: dict[Rate, str] = {"hits@1": "Hits@1", "hits@10": "Hits@10", "mrr": "MRR"}
WHOSE = "Each test entity of this graph is matched against the test entities of the other graph. The paper reports target to source."
SPREAD = 0.09  # between the runs' points of one bucket, so that their intervals do not cover each other
PALE = "rgba(128, 136, 144, 0.18)"  # behind what is chosen, on light and dark ground


def run_labels(runs: Sequence[OpenRun]) -> list[str]:
    """What to call runs in tables and figures: the variant where only one of them has it, else the run's own name."""
    times = Counter(run.card.variant for run in runs)
    names = cache.run_names([run.card for run in runs])
    labels = {number: text.cell(run.card.variant, 30) if times[run.card.variant] == 1 else names[number] for number, run in enumerate(runs)}
    return list(text.distinct_labels(labels).values())


def check_bucket(bucket: str | None) -> None:
    """
    Raises:
        AddressError: there is no such bucket of degrees.
    """
    if bucket is not None and bucket not in bucket_names():
        raise AddressError(f"This link asks for the degree range '{bucket[:40]}', which does not exist. Choose one of: {', '.join(bucket_names())}.")


def measured(run: OpenRun, side: str) -> pd.DataFrame:
    """A run's buckets of degrees that have queries, smallest degree first.

    Raises:
        RunError: an older version made the run.
    """
    table = run.table("degree")
    return table[(table["graph"] == side) & (table["queries"] > 0)].sort_values("least_degree")


def degree_figure(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate, chosen: str | None = None) -> go.Figure:
    """A line per run with 95 % intervals, and below it the number of queries of the first run. Points and bars carry their bucket."""
    ordered = pd.concat(tables).sort_values("least_degree")["bucket"].drop_duplicates()
    places = {bucket: place for place, bucket in enumerate(ordered)}
    fig = make_subplots(rows=2, shared_xaxes=True, row_heights=[0.76, 0.24], vertical_spacing=0.05)
    middle = (len(runs) - 1) / 2
    styles = run_styles([run.card.variant for run in runs])
    for number, (run, name, table, style) in enumerate(zip(runs, run_labels(runs), tables, styles, strict=True)):
        fig.add_scatter(
            x=table["bucket"].map(places) + (number - middle) * SPREAD,
            y=table[rate],
            name=text.figure_label(name),
            mode="lines+markers",
            customdata=table[["bucket", "queries", f"{rate}_low", f"{rate}_high"]],
            hovertemplate="%{y:.3f} (%{customdata[2]:.3f}–%{customdata[3]:.3f}) of %{customdata[1]:,} · "
            + text.figure_label(run.card.run_id, 40)
            + f"<extra>{text.figure_label(name)}</extra>",
            error_y={"array": table[f"{rate}_high"] - table[rate], "arrayminus": table[rate] - table[f"{rate}_low"], "thickness": 1.2, "width": 2},
            line={"color": style.colour, "dash": style.dash, "width": 2},
            marker={"symbol": style.point, "size": 9, "color": style.colour},
        )
    _counts(fig, tables[0], places)
    if chosen in places:
        fig.add_vrect(x0=places[chosen] - 0.45, x1=places[chosen] + 0.45, fillcolor=PALE, line_width=0, layer="below", row="all", col=1)
    fig.update_xaxes(tickvals=list(places.values()), ticktext=list(places), range=[-0.5, len(places) - 0.5], showgrid=False, zeroline=False)
    fig.update_xaxes(title="triples per entity", row=2)
    ends = pd.concat([table[[f"{rate}_low", f"{rate}_high"]] for table in tables])
    room = 0.05  # above and below the intervals
    fig.update_yaxes(range=[max(0.0, float(ends.min().min()) - room), min(1.0, float(ends.max().max())) + room / 2], title=RATES[rate], row=1)
    fig.update_layout(hovermode="x unified")
    return fig


def _counts(fig: go.Figure, table: pd.DataFrame, places: dict[str, int]) -> None:
    fig.add_bar(
        x=table["bucket"].map(places),
        y=table["queries"],
        customdata=table[["bucket"]],
        text=[f"{count:,}" for count in table["queries"]],
        textposition="outside",
        textfont={"size": 10},
        textangle=0,
        cliponaxis=False,
        hovertemplate="%{y:,} test entities<extra></extra>",
        marker={"color": UNKNOWN, "opacity": 0.55},
        showlegend=False,
        row=2,
        col=1,
    )
    fig.update_yaxes(title="entities", showticklabels=False, showgrid=False, range=[0, 1.5 * max(table["queries"].max(), 1)], row=2)


def relation_figure(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], names: Sequence[str], rate: Rate) -> go.Figure:
    """A row a relation, a point a run, with 95 % intervals; ``tables`` are indexed by relation and hold the ones to show, from the top."""
    fig = go.Figure()
    labels = [text.figure_label(name, 26) for name in names]
    middle = (len(runs) - 1) / 2
    styles = run_styles([run.card.variant for run in runs])
    for number, (name, table, style) in enumerate(zip(run_labels(runs), tables, styles, strict=True)):
        fig.add_scatter(
            x=table[rate],
            y=[place + (number - middle) * 2 * SPREAD for place in range(len(labels))],
            name=text.figure_label(name),
            mode="markers",
            customdata=table[["queries", f"{rate}_low", f"{rate}_high"]].assign(name=[text.figure_label(one) for one in names]),
            hovertemplate="%{customdata[3]}<br>%{x:.3f} (%{customdata[1]:.3f}–%{customdata[2]:.3f}) of %{customdata[0]:,}",
            error_x={"array": table[f"{rate}_high"] - table[rate], "arrayminus": table[rate] - table[f"{rate}_low"], "thickness": 1.2, "width": 2},
            marker={"symbol": style.point, "size": 9, "color": style.colour},
        )
    fig.update_yaxes(tickvals=list(range(len(labels))), ticktext=labels, range=[len(labels) - 0.5, -0.5], showgrid=False, zeroline=False)
    lowest = min(table[f"{rate}_low"].min() for table in tables)
    fig.update_xaxes(range=[max(0.0, lowest - 0.05), 1.02], title=RATES[rate])
    return fig


def flip_figure(flips: pd.DataFrame, chosen: str | None = None) -> go.Figure:
    """Gained upwards and lost downwards, by degree, as shares of the test entities in each range. Bars carry their bucket."""
    fig = go.Figure()
    places = list(range(len(flips)))
    shares = {name: flips[name] / flips["queries"].clip(lower=1) for name in ("gained", "lost")}
    for name, sign, colour, pattern in (("gained", 1, RIGHT, ""), ("lost", -1, WRONG, "/")):
        fig.add_bar(
            x=places,
            y=sign * shares[name],
            name=name,
            customdata=flips[["bucket", name, "queries"]],
            text=[f"{'+' if sign > 0 else '−'}{count:,}" if count else "" for count in flips[name]],
            textposition="outside",
            textfont={"size": 11},
            textangle=0,
            cliponaxis=False,
            hovertemplate=f"%{{customdata[1]:,}} {name} of %{{customdata[2]:,}}<extra></extra>",
            marker={"color": colour, "pattern": {"shape": pattern, "fgcolor": colour, "fillmode": "replace"}},
        )
    if chosen is not None and chosen in set(flips["bucket"]):
        place = flips["bucket"].tolist().index(chosen)
        fig.add_vrect(x0=place - 0.48, x1=place + 0.48, fillcolor=PALE, line_width=0, layer="below")
    gained, lost = float(shares["gained"].max()), float(shares["lost"].max())
    room = 0.2 * max(gained, lost, 0.01)  # for the numbers
    step = _step(gained + lost + 2 * room)
    ticks = [number * step for number in range(-math.floor((lost + room) / step), math.floor((gained + room) / step) + 1)]
    fig.update_xaxes(title="triples per entity", tickvals=places, ticktext=flips["bucket"].tolist(), range=[-0.5, len(flips) - 0.5], zeroline=False)
    words = [f"{100 * abs(tick):.3g}%" for tick in ticks]
    fig.update_yaxes(title="share of the test entities", range=[-lost - room, gained + room], tickvals=ticks, ticktext=words)
    fig.update_layout(barmode="relative", showlegend=True)
    return fig


def _step(span: float) -> float:
    """Between ticks, so that there are three to seven: 0.01, 0.02, 0.05, 0.1 and so on."""
    power = 10.0 ** math.floor(math.log10(span))
    return next(factor * power for factor in (0.2, 0.5, 1.0, 2.0) if span / (factor * power) <= 7)


def lead_words(difference: Difference, first: str) -> str:
    """Who is ahead in Hits@1, by how much; the interval is of the first run less the second."""
    ends = difference.interval
    interval = "" if ends is None else f" (95% interval of the difference: {text.signed(ends[0])} to {text.signed(ends[1])})"
    if not round(difference.value, 3):
        return f"Hits@1 is equal{interval}"
    return f"{first} is **{abs(difference.value):.3f}** {'ahead' if difference.value > 0 else 'behind'} in Hits@1{interval}"


def net_words(flips: pd.DataFrame) -> str:
    """Where most is gained on balance; where nothing is, where most is lost, or that nothing flipped at all."""
    net = (flips["gained"] - flips["lost"]).to_numpy()
    if not (flips["gained"] + flips["lost"]).any():
        return "No prediction changed."
    if not net.any():
        return "Gains and losses are equal in each degree range."
    row = flips.iloc[int(net.argmax() if net.max() > 0 else net.argmin())]
    counts = f"{row['gained']:,} gained and {row['lost']:,} lost of {text.count(int(row['queries']), 'test entity', 'test entities')}"
    if net.max() > 0:
        return f"The largest net gain is at degree {row['bucket']}: {counts}."
    return f"No degree range has a net gain. The largest net loss is at degree {row['bucket']}: {counts}."
