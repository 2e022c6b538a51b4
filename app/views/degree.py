"""Degree: whom does it fail?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from app import components, frame, pages, text
from app.cache import OpenRun
from app.glossary import explain
from app.palette import run_styles
from app.state import DegreeAddress, Rate

RATES: dict[Rate, str] = {"hits@1": "Hits@1", "hits@10": "Hits@10", "mrr": "MRR"}


def render(runs: Sequence[OpenRun], address: DegreeAddress) -> None:
    """The page."""
    rate = components.choice("Measure", RATES, name="rate", value=address.rate, default="hits@1", help=explain("Hits@1", "MRR", "degree"))
    tables = [_measured(run, address) for run in runs]
    if not any(len(table) for table in tables):
        components.empty_state("Nothing to measure", "This data has no test links, so nobody knows which matches are right.")
        return
    components.figure(
        _figure(runs, tables, rate),
        name=f"{rate}-by-degree",
        caption=_sentence(tables[0], rate),
        data=pd.concat([table.assign(run=run.card.run) for run, table in zip(runs, tables, strict=True)]),
    )


def _measured(run: OpenRun, address: DegreeAddress) -> pd.DataFrame:
    """The buckets that have queries, smallest degree first."""
    table = run.table("degree")
    return table[(table["graph"] == address.side) & (table["queries"] > 0)].sort_values("least_degree")


def _sentence(table: pd.DataFrame, rate: Rate) -> str:
    if table.empty:
        return "The first run has nothing to measure."
    least = table.iloc[0]
    share = f"{RATES[rate]} {text.score(least[rate])}, of {text.count(int(least['queries']), 'test entity', 'test entities')}"
    return f"Entities with {text.count(int(least['least_degree']), 'triple')}: {share}."


def _figure(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate) -> go.Figure:
    """A line a run, with 95 % intervals."""
    fig = go.Figure()
    for run, table, style in zip(runs, tables, run_styles([run.card.variant for run in runs]), strict=True):
        fig.add_scatter(
            x=table["bucket"],
            y=table[rate],
            name=text.figure_label(run.card.run_id),
            error_y={"array": table[f"{rate}_high"] - table[rate], "arrayminus": table[rate] - table[f"{rate}_low"], "thickness": 1},
            line={"color": style.colour, "dash": style.dash},
            marker={"symbol": style.point, "size": 8},
        )
    fig.update_xaxes(type="category", title="triples of the entity", categoryorder="array", categoryarray=list(tables[0]["bucket"]))
    fig.update_yaxes(range=[0, 1.02], title=RATES[rate])
    return fig


frame.several_runs(pages.DEGREE, render)
