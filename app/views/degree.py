"""Degree: accuracy by number of triples per entity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.query_list import query_list
from app.rate_figures import RATES, WHOSE, check_bucket, degree_figure, measured, run_names
from app.state import DegreeAddress, Rate, Shown
from engine.analysis.entities import bucket_names
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.comparison import Outcomes, bucket_ranks, outcomes

SHOWN: dict[Shown, str] = {"misses": "misses", "hits": "hits", "all": "all"}


def render(runs: Sequence[OpenRun], address: DegreeAddress) -> None:
    """The page."""
    tables = [measured(run, address.side) for run in runs]
    if not any(len(table) for table in tables):
        components.nothing_measured([run.card.run for run in runs])
        return
    check_bucket(address.bucket)
    with st.container(horizontal=True, gap="medium"):
        rate = components.choice("Measure", RATES, name="rate", value=address.rate, default="hits@1", help=explain("Hits@1", "Hits@10", "MRR"))
        names: dict[Side, str] = {side: components.graph_name(runs[0].view, side) for side in SIDES}
        components.choice("Test entities of", names, name="side", value=address.side, default="target", help=WHOSE)
    filled = next(table for table in tables if len(table))
    bucket = address.bucket or str(filled["bucket"].iloc[0])
    _figure(runs, tables, rate, bucket, address)
    _bucket(runs, address, bucket, filled)


def _figure(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate, bucket: str, address: DegreeAddress) -> None:
    key = state.widget_key(state.DEGREE_FIGURE, address.runs, address.side, rate)
    components.figure(
        degree_figure(runs, tables, rate, bucket),
        name=f"{rate}-by-degree",
        caption=_sentence(runs, tables, rate),
        data=pd.concat([table.assign(run=run.card.run) for run, table in zip(runs, tables, strict=True)]),
        height=460,
        key=key,
        on_select=lambda: components.follow_point(key, state.BUCKET),
    )
    st.caption(
        f"Lines: {RATES[rate]} with 95% intervals (points offset for readability). Bars: number of test entities. Click a point or bar to list them. "
        f"{_pool(runs)}",
        help=explain(RATES[rate], "degree", "interval"),
    )
    with st.expander(f"{RATES[rate]} and intervals as a table"):
        components.table(_interval_rows(runs, tables, rate), name=f"{rate}-by-degree-intervals", columns=_interval_columns(rate))


def _interval_rows(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate) -> pd.DataFrame:
    """A row for each run and bucket of degrees: what the figure draws."""
    parts = [
        pd.DataFrame(
            {
                "run": name,
                "triples": table["bucket"].to_numpy(),
                "test entities": table["queries"].to_numpy(),
                RATES[rate]: table[rate].to_numpy(),
                "from": table[f"{rate}_low"].to_numpy(),
                "to": table[f"{rate}_high"].to_numpy(),
            }
        )
        for name, table in zip(run_names(runs), tables, strict=True)
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


def _sentence(runs: Sequence[OpenRun], tables: Sequence[pd.DataFrame], rate: Rate) -> str:
    """What the poorest and the richest entities get, in each run."""
    parts = []
    for name, table in zip(run_names(runs), tables, strict=True):
        if len(table) > 1:
            least, most = table.iloc[0], table.iloc[-1]
            parts.append(f"{text.plain(name)} **{text.score(least[rate])}** → **{text.score(most[rate])}**")
    filled = next(table for table in tables if len(table))
    if not parts:
        return f"{RATES[rate]} by degree; all test entities have {filled['bucket'].iloc[0]} triples."
    ends = f"{filled['bucket'].iloc[0]} to {filled['bucket'].iloc[-1]} triples"
    return f"{RATES[rate]} for entities with {ends}: {', '.join(parts)}."


def _bucket(runs: Sequence[OpenRun], address: DegreeAddress, bucket: str, table: pd.DataFrame) -> None:
    """The entities of a bucket, those that the main run misses first."""
    st.subheader("Entities in this range", anchor=False)
    counts = dict(zip(table["bucket"], table["queries"], strict=True))
    labels = {name: f"{name} :gray[· {counts.get(name, 0):,}]" for name in bucket_names() if name in counts or name == bucket}
    with st.container(horizontal=True, gap="medium"):
        components.choice("Triples · test entities", labels, name=state.BUCKET, value=bucket, default=next(iter(counts)), help=explain("degree"))
        main = run_names(runs)[0]
        components.choice(
            "Show", SHOWN, name="show", value=address.show, default="misses", help=f"Hit: the true counterpart is ranked first in {text.plain(main)}."
        )
    with components.errors_shown(), st.spinner("Ranking the test entities…"):
        found = [_outcomes(run, address.side) for run in runs]
    ranks = bucket_ranks(found, runs[0].view.graphs[address.side].degrees, bucket, address.show)
    names: dict[str | int, str] = {"degree": "triples"}
    names.update({number: f"rank in {name}" for number, name in enumerate(run_names(runs))})
    said = f"predicted by {main}"
    query_list(
        runs[0],
        address.runs,
        address.side,
        ranks.rename(columns=names),
        search=address.search,
        name=f"degree-{bucket}-{address.show}",
        answers={"answer": said},
        columns={
            **{name: st.column_config.NumberColumn(help="Rank of the true counterpart; 1 is correct. " + explain("rank")) for name in names.values()},
            "triples": st.column_config.NumberColumn(width=60, help=explain("degree")),
            said: st.column_config.TextColumn(help="Best match in the main run, among the test entities."),
        },
    )


def _outcomes(run: OpenRun, side: Side) -> Outcomes:
    return cache.kept([run], ("outcomes", side), lambda: outcomes(run.run, side))


frame.several_runs(pages.DEGREE, render)
