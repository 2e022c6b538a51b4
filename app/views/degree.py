"""Degree: accuracy by number of triples per entity, and the test entities behind each range."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, state, text
from app.cache import OpenRun
from app.degree_chart import rates_by_degree
from app.glossary import explain
from app.query_list import query_list
from app.rate_figures import RATES, WHOSE, check_bucket, measured, run_labels
from app.state import DegreeAddress, DegreeTab, Shown
from app.tabs import open_tab
from engine.analysis.entities import bucket_names
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.comparison import Outcomes, bucket_ranks, outcomes

TABS: dict[DegreeTab, str] = {"chart": "Accuracy", "entities": "Misses and hits"}
HERE = {state.TAB: "entities"}
"""Kept in the address by choices within the list, for without them the address would lead to the chart."""
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
    asked = address.bucket is not None or address.search is not None or address.show != "misses"
    tab: DegreeTab = address.tab or ("entities" if asked else "chart")
    with open_tab(TABS, tab):
        if tab == "chart":
            key = state.widget_key(state.DEGREE_FIGURE, address.runs, address.side, rate)
            rates_by_degree(
                runs, tables, rate, key=key, bucket=address.bucket, on_select=lambda: components.follow_point(key, state.BUCKET, tab="entities")
            )
        else:
            _bucket(runs, address, address.bucket or str(filled["bucket"].iloc[0]), filled)


def _bucket(runs: Sequence[OpenRun], address: DegreeAddress, bucket: str, table: pd.DataFrame) -> None:
    """The entities of a bucket, those that the main run misses first."""
    counts = dict(zip(table["bucket"], table["queries"], strict=True))
    labels = {name: f"{name} :gray[· {counts.get(name, 0):,}]" for name in bucket_names() if name in counts or name == bucket}
    runs_named = run_labels(runs)
    main = runs_named[0]
    with st.container(horizontal=True, gap="medium"):
        first = next(iter(counts))
        components.choice("Triples · test entities", labels, name=state.BUCKET, value=bucket, default=first, help=explain("degree"), also=HERE)
        hit = f"Hit: the true counterpart is ranked first in {text.plain(main)}."
        components.choice("Show", SHOWN, name="show", value=address.show, default="misses", help=hit, also=HERE)
    with components.errors_shown(), st.spinner("Ranking the test entities…"):
        found = [_outcomes(run, address.side) for run in runs]
    ranks = bucket_ranks(found, runs[0].view.graphs[address.side].degrees, bucket, address.show)
    names: dict[str | int, str] = {"degree": "triples"}
    names.update({number: f"rank in {name}" for number, name in enumerate(runs_named)})
    said = f"predicted by {main}"
    query_list(
        runs[0],
        address.runs,
        address.side,
        ranks.rename(columns=names),
        search=address.search,
        also=HERE,
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
