"""Accuracy by degree as one chart: the same on the pages Degree and Compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import components, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.rate_figures import RATES, degree_figure, run_labels
from app.state import Rate

HEIGHT = 400


def rates_by_degree(
    runs: Sequence[OpenRun],
    tables: Sequence[pd.DataFrame],
    rate: Rate,
    *,
    key: str,
    bucket: str | None,
    on_select: Callable[[], None],
) -> None:
    """The chart with its finding, how to read it, and its numbers as a table.

    Args:
        runs: the main one first.
        tables: as of :func:`app.rate_figures.measured`, one per run, and one of them is not empty.
        rate: what to draw.
        key: of the chart, whose points and bars carry their bucket.
        bucket: the one that is marked.
        on_select: called when a point or bar was clicked.
    """
    components.figure(
        degree_figure(runs, tables, rate, bucket),
        name=f"{rate}-by-degree",
        caption=_finding(runs, tables, rate),
        data=pd.concat([table.assign(run=run.card.run) for run, table in zip(runs, tables, strict=True)]),
        height=HEIGHT,
        key=key,
        on_select=on_select,
    )
    offset = " Points are offset for readability." if len(runs) > 1 else ""
    st.caption(
        f"Lines: {RATES[rate]} with 95% intervals.{offset} Bars: number of test entities. Click a point or bar to list them. {_pool(runs)}",
        help=explain(RATES[rate], "degree", "interval"),
    )
    with components.drawn_when_open(f"{RATES[rate]} and intervals as a table", state.widget_key(state.AS_TABLE, rate)) as is_open:
        if is_open:
            components.table(_interval_rows(runs, tables, rate), name=f"{rate}-by-degree-intervals", columns=_interval_columns(rate))


def _interval_rows(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate) -> pd.DataFrame:
    """A row for each run and bucket of degrees: what the chart shows."""
    parts = [
        pd.DataFrame(
            {
                "run": label,
                "triples": table["bucket"].to_numpy(),
                "test entities": table["queries"].to_numpy(),
                RATES[rate]: table[rate].to_numpy(),
                "from": table[f"{rate}_low"].to_numpy(),
                "to": table[f"{rate}_high"].to_numpy(),
                "run id": run.card.run_id,
            }
        )
        for label, run, table in zip(run_labels(runs), runs, tables, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def _interval_columns(rate: Rate) -> dict[str, Any]:
    number, ends = st.column_config.NumberColumn, ("from", "to")
    return {
        "triples": st.column_config.TextColumn(help=explain("degree")),
        RATES[rate]: number(format="%.3f", help=explain(RATES[rate])),
        **{end: number(f"95% {end}", format="%.3f", help=explain("interval")) for end in ends},
    }


def _pool(runs: Sequence[OpenRun]) -> str:
    splits = {run.card.split for run in runs}
    if len(splits) > 1:
        return "These runs split the links differently: each is measured on its own test entities, and the bars show those of the first."
    return f"Protocol: {text.plain(runs[0].card.protocol, 300)}."


def _finding(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate) -> str:
    """What the entities with the fewest and with the most triples get, in each run."""
    parts = []
    for label, table in zip(run_labels(runs), tables, strict=True):
        if len(table) > 1:
            least, most = table.iloc[0], table.iloc[-1]
            parts.append(f"{text.plain(label)} **{text.score(least[rate])}** → **{text.score(most[rate])}**")
    filled = next(table for table in tables if len(table))
    if not parts:
        return f"{RATES[rate]} by degree; all test entities have {filled['bucket'].iloc[0]} triples."
    ends = f"{filled['bucket'].iloc[0]} to {filled['bucket'].iloc[-1]} triples"
    return f"{RATES[rate]} for entities with {ends}: {', '.join(parts)}."
