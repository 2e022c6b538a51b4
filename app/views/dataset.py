"""Data set: problems of the data first, then sizes, links, degrees, triples and relations in tabs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import components, frame, pages, palette, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.state import DataSetAddress, DataSetTab
from app.tabs import open_tab
from engine.data.inspection import GraphSummary, Inspection
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.data_profile import (
    PaperData,
    dangling_entities,
    degree_survival,
    isolated_entities,
    paper_data,
    relations_holding,
    sample_triples,
)
from engine.runs.entities import short_id
from engine.util.arrays import IntArray

SAMPLES = 5
LISTED = 200
HEIGHT = 330  # pixels
TABS: Mapping[DataSetTab, str] = {
    "overview": "Sizes and links",
    "degrees": "Degrees",
    "samples": "Sample triples",
    "detail": "One graph in detail",
}
HERE = {state.TAB: "detail"}
"""Kept in the address by choices within the tab, for without them the address would lead to the overview."""

ROLES: Mapping[str, str] = {"train": "seed", "valid": "validation", "test": "test", "unsure": "probable"}


def render(run: OpenRun, address: DataSetAddress) -> None:
    """The page."""
    found = run.inspection
    st.subheader("Data quality", anchor=False)
    components.findings(found.findings)
    if not run.card.links.get("test"):
        components.measure_by_sample(run.card.run)
    detailed = address.relation is not None or address.search is not None or address.side != "source"
    tab: DataSetTab = address.tab or ("detail" if detailed else "overview")
    with open_tab(TABS, tab):
        if tab == "overview":
            _overview(run, found)
        elif tab == "degrees":
            _degrees(run)
        elif tab == "samples":
            _samples(run, address)
        else:
            side = components.choice("Graph", _names(run), name="side", value=address.side, default="source", also=HERE)
            _relations(run, address, side)
            _alone(run, address, side)


def _overview(run: OpenRun, found: Inspection) -> None:
    sizes, links = st.columns([3, 2], gap="large")
    with sizes:
        _sizes(run, found)
    with links:
        _links(found)
        _paper(found)


def _names(run: OpenRun) -> dict[Side, str]:
    """Mark and name of each graph, for widgets and heads: distinct even where the names are equal."""
    return {side: f"{palette.PLAIN_MARKS[side]} {text.plain(run.view.graphs[side].name, 30)}" for side in SIDES}


# Sizes, links, the paper


def _sizes(run: OpenRun, found: Inspection) -> None:
    st.subheader("Sizes", anchor=False)
    graphs: dict[Side, GraphSummary] = {"source": found.source, "target": found.target}
    heads = {side: f"{palette.PLAIN_MARKS[side]} {text.cell(graphs[side].name, 30)}" for side in SIDES}
    rows = [{"what": what, **{heads[side]: value for side, value in zip(SIDES, values, strict=True)}} for what, values in _size_rows(graphs)]
    number = st.column_config.NumberColumn(format="localized")
    columns = {"what": st.column_config.TextColumn("", width=178), **dict.fromkeys(heads.values(), number)}
    components.table(
        pd.DataFrame(rows),
        name=f"{run.card.dataset}-sizes",
        columns=columns,
        above=lambda: st.markdown(_coverage(run, graphs)),
        light=True,
    )


def _size_rows(graphs: Mapping[Side, GraphSummary]) -> list[tuple[str, tuple[float, float]]]:
    source, target = (graphs[side] for side in SIDES)
    counted = (
        ("entities", source.entities, target.entities),
        ("… with a name", source.named, target.named),
        ("… without a triple", source.isolated, target.isolated),
        ("… without a link", source.dangling, target.dangling),
        ("relations", source.relations, target.relations),
        ("triples", source.triples, target.triples),
        ("… self-loops", source.self_loops, target.self_loops),
        ("attribute triples", source.attributes, target.attributes),
    )
    degrees = (("median", "median degree"), ("mean", "mean degree"), ("p90", "90th percentile of degree"), ("max", "largest degree"))
    return [
        *((what, (left, right)) for what, left, right in counted),
        *((words, (source.degrees[name], target.degrees[name])) for name, words in degrees),
    ]


def _coverage(run: OpenRun, graphs: Mapping[Side, GraphSummary]) -> str:
    """Names in one line."""
    parts = [f"{graph.named / graph.entities:.0%} of {components.graph_name(run.view, side)}" for side, graph in graphs.items() if graph.entities]
    return f"Entities with a name: {', '.join(parts)}." if parts else "Both graphs are empty."


def _links(found: Inspection) -> None:
    st.subheader("Known links", anchor=False)
    total = sum(number for role, number in found.links.items() if role != "unsure")
    rows = [
        {"links": ROLES[role], "number": number, "share": number / total if total and role != "unsure" else None}
        for role, number in found.links.items()
        if number or role != "unsure"
    ]
    smaller = min(found.source.entities, found.target.entities)
    share = f" They cover {min(total / smaller, 1):.0%} of the smaller graph." if smaller else ""
    words = f"{text.count(total, 'known link')}; split {text.plain(found.split) or 'not given'}.{share}" if total else "There are no known links."
    components.table(
        pd.DataFrame(rows),
        name="links",
        above=lambda: st.markdown(words),
        light=True,
        columns={
            "links": st.column_config.TextColumn(help=explain("seed link", "validation link", "test link", "probable link")),
            "number": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.NumberColumn(format="percent"),
        },
    )


def _paper(found: Inspection) -> None:
    """Whether the paper has figures of this data."""
    known = paper_data(*((graph.entities, graph.triples) for graph in (found.source, found.target)))
    if known is None:
        st.caption("No data set of the paper has graphs of these sizes, so there are no published results to compare with.")
        return
    words = f"These are the graphs of **{known.name}** in the paper: {_difference(known, found)}. It reports, with 30% of the links as seeds:"
    rows = [{"variant": variant, "Hits@1": hits, "Hits@10": ten, "MRR": mrr} for variant, (hits, ten, mrr) in known.results.items()]
    number = st.column_config.NumberColumn(format="%.3f")
    columns = dict.fromkeys(("Hits@1", "Hits@10", "MRR"), number)
    components.table(pd.DataFrame(rows), name="paper", columns=columns, above=lambda: st.markdown(words), light=True)


def _difference(known: PaperData, found: Inspection) -> str:
    """How the triples differ; entities are as many, or the data would not have been recognised."""
    differences = [graph.triples - triples for graph, triples in zip((found.source, found.target), known.triples, strict=True)]
    if not any(differences):
        return "same number of entities and triples"
    return f"same number of entities; {differences[0]:+,} and {differences[1]:+,} triples (published copies differ)"


# Degrees


def _degrees(run: OpenRun) -> None:
    st.subheader("Degrees", anchor=False, help=explain("degree"))
    tables = {side: degree_survival(run.view.graphs[side].degrees) for side in SIDES}
    if all(table.empty for table in tables.values()):
        components.empty_state("No triples", "Neither graph has triples, so only names and values can align them.")
        return
    components.figure(
        _degree_figure(run, tables),
        name="degrees",
        caption=_degree_sentence(run),
        data=pd.concat([table.assign(graph=side) for side, table in tables.items()], ignore_index=True),
        height=340,
    )


def _degree_sentence(run: OpenRun) -> str:
    found = run.inspection
    parts = []
    for side, graph in zip(SIDES, (found.source, found.target), strict=True):
        degrees = graph.degrees
        parts.append(f"{components.graph_name(run.view, side)} median {text.count(int(degrees['median']), 'triple')}, maximum {degrees['max']:,}")
    return f"Number of entities with at least n triples. Triples per entity: {'; '.join(parts)}."


def _degree_figure(run: OpenRun, tables: Mapping[Side, pd.DataFrame]) -> go.Figure:
    """Both axes logarithmic; entities without triples are not on them."""
    fig = go.Figure()
    for side, table in tables.items():
        fig.add_scatter(
            x=table["degree"],
            y=table["at_least"],
            name=f"{palette.PLAIN_MARKS[side]} {text.figure_label(run.view.graphs[side].name, 30)}",
            mode="lines+markers",
            line={"color": palette.GRAPH[side], "dash": palette.DASHES[SIDES.index(side)], "width": 1.5},
            marker={"symbol": palette.POINTS[side], "size": 5},
            hovertemplate="%{y:,} entities with at least %{x:,} triples",
        )
    fig.update_xaxes(type="log", title="triples per entity (n)", dtick=1)
    fig.update_yaxes(type="log", title="entities with at least n", dtick=1)
    return fig


# Triples


def _samples(run: OpenRun, address: DataSetAddress) -> None:
    st.subheader("Sample triples", anchor=False)
    for column, side in zip(st.columns(2, gap="large"), SIDES, strict=True):
        with column:
            st.caption(components.graph_name(run.view, side))
            _triples(run, address.runs, side, sample_triples(run.table("triples"), side, SAMPLES))


def _triples(run: OpenRun, runs: Sequence[str], side: Side, triples: pd.DataFrame) -> None:
    """Triples with links to their entities."""
    if triples.empty:
        st.markdown("No triples.")
    names = run.relation_names[side]
    with st.container(border=True, gap="xsmall"):
        for head, relation, tail in triples.itertuples(index=False):
            with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
                _entity(run, runs, side, head)
                st.markdown(f":gray[→ {text.plain(short_id(names[relation]), 60)} →]", width="content")
                _entity(run, runs, side, tail)


def _entity(run: OpenRun, runs: Sequence[str], side: Side, index: int) -> None:
    entity = run.view.entity(side, int(index))
    pages.link(pages.ENTITY, state.entity_address(runs, entity), text.plain(entity.title, 60))


# One graph


def _relations(run: OpenRun, address: DataSetAddress, side: Side) -> None:
    st.subheader("Relations", anchor=False)
    profile = run.relation_profiles[side]
    if profile.empty:
        st.markdown("This graph has no relations.")
        return
    st.markdown(_relation_sentence(profile))
    shown = _searched(address, profile)
    listing, detail = st.columns([2, 1], gap="medium")
    with listing:
        _relation_table(run, address, side, shown)
    with detail:
        _relation(run, address, side, profile)


def _relation_sentence(profile: pd.DataFrame) -> str:
    first = profile.iloc[0]
    rare = int((profile["triples"] <= 1).sum())
    most = f"The most frequent, {text.plain(short_id(first['name']), 60)}, has {first['share']:.0%} of the triples"
    return f"{text.count(len(profile), 'relation')}. {most}; {rare:,} have at most one triple."


def _searched(address: DataSetAddress, profile: pd.DataFrame) -> pd.DataFrame:
    """The relations that hold what is searched for."""
    components.search_box("Search by name", address.search, placeholder="part of a relation's name", width=320, also=HERE)
    return relations_holding(profile, address.search or "")


def _relation_table(run: OpenRun, address: DataSetAddress, side: Side, shown: pd.DataFrame) -> None:
    if shown.empty:
        components.empty_state("No relations match", "Try a part of the name, or the other graph.")
        return
    key = state.widget_key(state.RELATION_TABLE, run.card.run, side, address.search, address.relation)
    names = shown["name"].tolist()

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        state.set_parameters({"relation": names[rows[0]] if rows else None, **HERE})

    number = st.column_config.NumberColumn
    components.table(
        shown.assign(name=[text.cell(short_id(name)) for name in names])[
            ["name", "triples", "share", "heads", "tails", "functionality", "inverse_functionality"]
        ],
        name=f"{run.card.dataset}-{side}-relations",
        whole=lambda: shown,
        key=key,
        on_select=follow,
        chosen=names.index(address.relation) if address.relation in names else None,
        height=HEIGHT if len(shown) > 8 else "auto",
        columns={
            "name": st.column_config.TextColumn("relation", width=140),
            "triples": number(format="localized", width=70, help=explain("frequency")),
            "share": number(format="percent", width=65),
            "heads": number(format="localized", width=65, help="Number of distinct heads."),
            "tails": number(format="localized", width=65, help="Number of distinct tails."),
            "functionality": number(format="%.2f", width=95, help=explain("functionality")),
            "inverse_functionality": number("inverse", format="%.2f", width=70, help=explain("inverse functionality")),
        },
    )


def _relation(run: OpenRun, address: DataSetAddress, side: Side, profile: pd.DataFrame) -> None:
    """Some triples of the chosen relation."""
    chosen = profile[profile["name"] == address.relation] if address.relation is not None else profile.iloc[:1]
    if chosen.empty:
        st.info(f"This graph has no relation “{text.plain(str(address.relation), 60)}”. Choose one from the table.", icon=":material/search_off:")
        return
    row = chosen.iloc[0]
    name = text.plain(short_id(row["name"]), 80)
    st.markdown(f"**{name}**: {text.count(int(row['triples']), 'triple')}, {row['heads']:,} heads, {row['tails']:,} tails. For example:")
    _triples(run, address.runs, side, sample_triples(run.table("triples"), side, SAMPLES, int(row["relation"])))
    pages.link(
        pages.PAIRS,
        state.PairsAddress(address.runs, side=side, relation=row["name"]),
        "Show pairs with this relation",
        icon=":material/table_rows:",
    )


def _alone(run: OpenRun, address: DataSetAddress, side: Side) -> None:
    """Entities without a known link, and without a triple."""
    st.subheader("Unlinked and isolated entities", anchor=False)
    dangling = dangling_entities(run.view, run.table("links"), side)
    isolated = isolated_entities(run.view, side)
    without_link, without_triple = st.tabs([f"without a known link ({len(dangling):,})", f"without a triple ({len(isolated):,})"])
    with without_link:
        st.markdown("Entities without a known link may have no counterpart, or one that is not yet known. Sorted by number of triples.")
        _entities(run, address, side, dangling, "without-link")
    with without_triple:
        st.markdown("Entities without triples can be aligned only by names and values.")
        _entities(run, address, side, isolated, "without-triple")


def _entities(run: OpenRun, address: DataSetAddress, side: Side, entities: IntArray, name: str) -> None:
    if not len(entities):
        st.caption("None.")
        return
    graph = run.view.graphs[side]

    def listed(indices: IntArray) -> pd.DataFrame:
        return pd.DataFrame(
            {"entity": [graph.title(index) for index in indices], "uri": [graph.uris[index] for index in indices], "triples": graph.degrees[indices]}
        )

    shown = entities[:LISTED]
    rows = listed(shown)
    row = components.table(
        rows.assign(entity=rows["entity"].map(text.cell), uri=rows["uri"].map(text.cell)),
        name=f"{run.card.dataset}-{side}-{name}",
        whole=lambda: listed(entities),
        key=state.widget_key(state.ENTITY_TABLE, run.card.run, side, name),
        on_select="rerun",
        height=HEIGHT if len(shown) > 8 else "auto",
        columns={"triples": st.column_config.NumberColumn(format="localized", width=80)},
    )
    if len(shown) < len(entities):
        st.caption(f"First {len(shown):,}; the download contains all {len(entities):,}.")
    if row is not None:
        pages.go(pages.ENTITY, state.entity_address(address.runs, run.view.entity(side, int(shown[row]))))


frame.one_run(pages.DATASET, render)
