"""Relations: which relations the model weights most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import components, frame, pages, state, text
from app.cache import OpenRun
from app.copyable import copyable
from app.glossary import explain
from app.palette import DIRECTION, GRAPH, MARKS, PLAIN_MARKS, UNKNOWN
from app.state import AddressError, Direction, RelationsAddress, RelationsTab, RelationsView
from app.tabs import open_tab
from engine.analysis.relations import BANDS
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.relations import Relation, RelationView, Setting, Twin, of_each_band

MESSAGE_WORDS: Mapping[str, str] = {"forward": "messages from tail to head", "inverse": "messages from head to tail"}
DIRECTION_POINTS: Mapping[Direction, str] = {"forward": "triangle-right", "inverse": "triangle-left"}
DIRECTION_WORDS: Mapping[Direction, str] = {"forward": "forward ▸", "inverse": "inverse ◂"}
LEAST = (1, 10, 100)
LEAST_HELP = "Relations with one or two triples may rank high by chance and affect few entities."
TWIN_HELP = "Reversed: with head and tail exchanged. Seeds: of the triples with seed links at both ends, how many have counterparts that it connects."
CORRESPONDENCE_COLUMNS: Mapping[str, Any] = {
    name: st.column_config.NumberColumn(format="%.3f") for name in ("source implies target", "target implies source")
}
COMPARED_COLUMNS = {
    "agreement": st.column_config.NumberColumn(
        format="%.2f", help="Share of the pairs with both attributes that have an equal value; smoothed by two pairs without one."
    ),
    "agree": st.column_config.NumberColumn(format="localized", help="Pairs with an equal value."),
    "compared": st.column_config.NumberColumn(format="localized", help="Pairs in which both entities have the attribute."),
}
OF_EACH_BAND = 12
EXAMPLES = 8
BAR_HEIGHT, BARS_MARGIN = 21, 110  # pixels
LIST_HEIGHT = 640
LABEL_LENGTH = 26
VIEWS: Mapping[RelationsView, str] = {
    "list": "Relations",
    "chart": "Chart",
    "all": "All columns",
    "correspondences": "Correspondences",
    "attributes": "Compared attributes",
}
TABS: Mapping[RelationsTab, str] = {"importance": "Importance", "counterparts": "Counterparts", "examples": "Examples"}


def render(run: OpenRun, address: RelationsAddress) -> None:
    """The page."""
    offered = {view: words for view, words in VIEWS.items() if view not in STORED or run.view.has(STORED[view])}
    view: RelationsView = address.view if address.view in offered else "list"
    with open_tab(offered, view, name=state.VIEW):
        if view == "correspondences":
            _correspondences(run)
        elif view == "attributes":
            _compared_attributes(run)
        elif components.lacks_in_baseline(run.run.manifest, "relation importance"):
            return
        elif not run.relations.layers:
            components.empty_state(
                "No relation importance",
                "This model weights all relations equally, or the graphs have no triples. Choose a run with relational attention.",
            )
        else:
            _ranked(run, address, view)


STORED: Mapping[RelationsView, str] = {"correspondences": "correspondences", "attributes": "value_attributes"}
"""Tables that runs of older versions do not have."""


def _ranked(run: OpenRun, address: RelationsAddress, view: RelationsView) -> None:
    """The relations by importance: a list next to one of them, a chart, or a table with everything."""
    relations = run.relations
    setting = Setting(
        address.layer if address.layer in relations.layers else relations.layers[0],
        address.channel if address.channel in relations.channels else relations.channels[0],
        address.direction,
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        _search_box(address)
        with st.popover("Settings", icon=":material/tune:"):
            _settings(run, address, setting)
    if address.layer not in (None, setting.layer):
        st.caption(f"This run has no layer {address.layer}; layer {setting.layer} is shown.")
    found = relations.search(setting, address.search or "", side=address.graph, band=address.band, least=address.least)
    if found.empty:
        components.empty_state("No relations match", "Try a part of the name, or change the graph or band in the settings.")
    else:
        st.markdown(_sentence(setting, found))
    relation = _relation(relations, address, found)
    if view == "list":
        left, right = st.columns([6, 5], gap="medium")
        with left:
            if len(found):
                _table(run, setting, found, relation)
        with right:
            if relation is not None:
                _one_relation(run, address, relation)
    elif len(found):
        if view == "chart":
            _bars(run, address, setting, found, relation)
        else:
            _table(run, setting, found, relation, wide=True)


# Which importances, and which relations


def _settings(run: OpenRun, address: RelationsAddress, setting: Setting) -> None:
    """What the address asks for, else what the run has; choices only where there is one."""
    view = run.relations
    if len(view.layers) > 1:
        layers = {number: str(number) for number in view.layers}
        components.choice("Layer", layers, name="layer", value=setting.layer, default=view.layers[0], help=explain("layer"))
    if len(view.channels) > 1:
        channels: dict[str, str] = {name: name for name in view.channels}
        components.choice("Channel", channels, name="channel", value=setting.channel, default="entity", help=explain("channel"))
    components.choice(
        "Direction", DIRECTION_WORDS, name="direction", value=address.direction, default="forward", help=explain("direction", "importance")
    )
    graphs: dict[str, str] = {"both": "both", **{str(side): f"{PLAIN_MARKS[side]} {text.plain(run.view.graphs[side].name, 20)}" for side in SIDES}}
    components.choice("Graph", graphs, name="graph", value=address.graph or "both", default="both")
    bands: dict[str, str] = {"all": "all", **{str(band): band for band in BANDS}}
    components.choice("Band", bands, name="band", value=address.band or "all", default="all", help=explain("band"))
    numbers = {number: f"{number:,}" for number in sorted({*LEAST, address.least})}
    components.choice("Minimum triples", numbers, name="least", value=address.least, default=1, help=LEAST_HELP)


def _search_box(address: RelationsAddress) -> None:
    """Follows the address, too, as when one goes back."""
    key = state.widget_key(state.RELATION_SEARCH, address.runs[0])
    if st.session_state.get(key, "").strip() != (address.search or ""):  # what is being typed may end in a space
        st.session_state[key] = address.search or ""
    st.text_input(
        "Search by name",
        key=key,
        max_chars=500,
        placeholder="a part of the name",
        icon=":material/search:",
        live="300ms",
        width=320,
        on_change=lambda: state.set_parameter("search", st.session_state[key].strip() or None),
    )


def _relation(view: RelationView, address: RelationsAddress, found: pd.DataFrame) -> Relation | None:
    """The relation of the address, else the first of the list."""
    if address.relation is None:
        return None if found.empty else view.relations[found["graph"].iloc[0]][int(found["relation"].iloc[0])]
    relation = view.find(address.relation, address.side)
    if relation is None:
        where = "Neither graph has" if address.side is None else f"The {address.side} graph does not have"
        components.show_error(
            AddressError(f"{where} a relation '{text.cell(address.relation, 80)}'. Search for it, or choose a relation from the list.")
        )
    return relation


def _open(rows: pd.DataFrame, row: int, view: RelationView) -> None:
    """From a callback: look at the relation of a row."""
    side: Side = rows["graph"].iloc[row]
    state.set_parameters({"side": side, "relation": view.relations[side][int(rows["relation"].iloc[row])].name, state.VIEW: None})


# All of them


def _bars(run: OpenRun, address: RelationsAddress, setting: Setting, found: pd.DataFrame, relation: Relation | None) -> None:
    shown = of_each_band(found, OF_EACH_BAND)
    key = state.widget_key(state.RELATION_BARS, run.card.run, setting, address.graph, address.band, address.least, address.search, relation)

    def follow() -> None:
        points = st.session_state[key]["selection"]["points"]
        if points:
            places, _ = _places(shown, relation)
            _open(shown, places.index(int(points[0]["y"])), run.relations)

    components.figure(
        _bars_figure(run, shown, relation),
        name=f"relation-importance-layer-{setting.layer}-{setting.channel}-{setting.direction}",
        caption=_drawn(found, shown),
        data=found,
        height=BARS_MARGIN + BAR_HEIGHT * (len(shown) + shown["band"].nunique()),
        key=key,
        on_select=follow,
    )


def _sentence(setting: Setting, found: pd.DataFrame) -> str:
    """Which of the importances these are, and who comes first and last."""
    first, last = found.iloc[0], found.iloc[-1]
    start = f"Layer {setting.layer}, {setting.channel} channel, {setting.direction} ({MESSAGE_WORDS[setting.direction]}): "
    highest, lowest = (text.minus(text.score(row["importance"])) for row in (first, last))
    most = f"highest: {_named(first)} ({highest}, rank {first['rank']:,} of {first['of']:,})"
    least = f"; lowest: {_named(last)} ({lowest}, rank {last['rank']:,})" if len(found) > 1 else ""
    return f"{start}{most}{least}."


def _drawn(found: pd.DataFrame, shown: pd.DataFrame) -> str:
    """What of the list the figure shows."""
    if len(shown) == len(found):
        return f"All {text.count(len(found), 'relation')}; ranks and bands cover both graphs and directions. Click a bar to show the relation."
    which = "the first, middle and last of each band" if shown["band"].nunique() > 1 else "the first"
    return f"{len(shown)} of {len(found):,} relations ({which}); ranks and bands cover both graphs and directions. Click a bar to show the relation."


def _named(row: pd.Series) -> str:
    return f"{MARKS[row['graph']]} **{text.plain(row['title'], 40)}**"


def _bars_figure(run: OpenRun, shown: pd.DataFrame, relation: Relation | None) -> go.Figure:
    """A bar per relation, below the name of its band; rows have numbers, for names may be equal."""
    places, ticks = _places(shown, relation)
    rows = shown.assign(place=places, hint=[_hint(row) for row in shown.to_dict("records")])
    fig = go.Figure()
    for side in SIDES:
        part = rows[rows["graph"] == side]
        fig.add_bar(
            x=part["importance"],
            y=part["place"],
            orientation="h",
            name=f"{PLAIN_MARKS[side]} {text.figure_label(run.view.graphs[side].name, 30)}",
            marker={"color": GRAPH[side], "pattern": {"shape": "" if side == "source" else "/", "size": 5, "solidity": 0.3}},
            text=[text.minus(f"{value:.3g}") for value in part["importance"]],
            textposition="outside",
            hovertext=part["hint"],
            hoverinfo="text",
            showlegend=True,
        )
    fig.update_layout(barmode="overlay")
    fig.update_yaxes(
        tickmode="array", tickvals=list(ticks), ticktext=list(ticks.values()), range=[max(ticks) + 0.6, -0.6], showgrid=False, automargin=True
    )
    fig.update_xaxes(title="relation importance (v · r)", range=_with_room(shown["importance"]))
    return fig


def _places(shown: pd.DataFrame, relation: Relation | None) -> tuple[list[int], dict[int, str]]:
    """The row of each bar from the top, and the label of each row."""
    places: list[int] = []
    ticks: dict[int, str] = {}
    band = None
    for row in shown.to_dict("records"):
        if row["band"] != band:
            band = row["band"]
            ticks[len(ticks)] = f"<b>{band}</b>"
        chosen = relation is not None and (relation.side, relation.index) == (row["graph"], row["relation"])
        label = text.figure_label(row["title"], LABEL_LENGTH)
        places.append(len(ticks))
        ticks[len(ticks)] = f"<b>▸ {label}</b>" if chosen else label
    return places, ticks


def _with_room(values: pd.Series) -> list[float]:
    """A range in which the numbers beside the bars fit."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    room = 0.14 * ((high - low) or 1.0)
    return [low - (room if low < 0 else 0), high + room]


def _hint(row: Mapping[Any, Any]) -> str:
    parts = [
        f"<b>{text.figure_label(row['title'])}</b>",
        text.figure_label(row["name"], 80),
        f"importance {row['importance']:.3f}, rank {row['rank']:,} of {row['of']:,} ({row['band']})",
        f"{text.count(int(row['frequency']), 'triple')}, relative attention {row['relative_attention']:.2f}",
    ]
    return "<br>".join(parts)


def _table(run: OpenRun, setting: Setting, found: pd.DataFrame, relation: Relation | None, *, wide: bool = False) -> None:
    """The relations as rows to choose from; ``wide``: with everything that is known of each."""
    measured = bool(found["queries"].notna().any())
    key = state.widget_key(state.RELATION_TABLE, run.card.run, setting, wide, len(found), found["name"].iloc[0], found["name"].iloc[-1])
    chosen = _row_of(found, relation)
    if key not in st.session_state or st.session_state[key]["selection"]["rows"] != chosen:
        st.session_state[key] = {"selection": {"rows": chosen, "columns": [], "cells": []}}

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows:
            _open(found, rows[0], run.relations)
        else:
            state.set_parameters({"side": None, "relation": None})

    unmeasured = "" if measured else " There are no test links, so there is no Hits@1."
    words = f"{text.count(len(found), 'relation')}. Select a row to show the relation.{unmeasured}"
    if not measured:
        components.measure_by_sample(run.card.run)
    rows = _rows(found, measured)
    shown = rows if wide else rows[[name for name in SHORT if name in rows]]
    components.table(
        shown,
        name="relations",
        above=lambda: st.caption(words),
        whole=lambda: found,
        pinned=("relation",),
        key=key,
        on_select=follow,
        columns=_columns(found),
        height=LIST_HEIGHT if len(shown) > 17 else "auto",
    )


def _correspondences(run: OpenRun) -> None:
    """Which relations and attributes of the two graphs say the same, by the facts of matched entities."""
    found = run.correspondences()
    if found.empty:
        st.caption("Too few facts of matched entities agree to find corresponding relations.")
        return
    words = "How often a fact of one graph holds for the matched entities in the other graph. Matches: seed links and mutual best matches."
    shown = pd.DataFrame(
        {
            "kind": found["kind"],
            "source": found["source"].map(text.cell),
            "target": found["target"].map(text.cell),
            "direction": found["turned"].map({True: "reversed", False: "same"}),
            "source implies target": found["source_implies_target"],
            "target implies source": found["target_implies_source"],
            "facts": found["support"].round().astype("int64"),
        }
    )
    components.table(
        shown,
        name="correspondences",
        whole=lambda: found,
        columns=CORRESPONDENCE_COLUMNS,
        above=lambda: st.caption(words, help=explain("correspondence")),
    )


def _compared_attributes(run: OpenRun) -> None:
    """The attributes whose values a literal run compares, and how to leave one out."""
    found = run.table("value_attributes")
    words = (
        "Attributes are paired by the values that seed links and added pairs share. An equal value counts by the agreement of its attributes, "
        "divided by the number of entities that have it. The setting `values.exclude` leaves attributes out of the next run."
    )
    shown = pd.DataFrame(
        {
            "source": found["source"].map(text.cell),
            "target": found["target"].map(text.cell),
            "agreement": found["agreement"],
            "agree": found["support"],
            "compared": found["compared"],
        }
    )
    components.table(shown, name="value-attributes", whole=lambda: found, columns=COMPARED_COLUMNS, above=lambda: st.caption(words))


def _row_of(found: pd.DataFrame, relation: Relation | None) -> list[int]:
    if relation is None:
        return []
    rows: list[int] = found.index[(found["graph"] == relation.side) & (found["relation"] == relation.index)].tolist()
    return rows


def _rows(found: pd.DataFrame, measured: bool) -> pd.DataFrame:
    rows = pd.DataFrame(
        {
            "relation": [f"{PLAIN_MARKS[side]} {text.cell(title, 80)}" for side, title in zip(found["graph"], found["title"], strict=True)],
            "importance": found["importance"],
            "rank": found["rank"],
            "band": found["band"],
            "triples": found["frequency"],
            "functionality": found["functionality"],
            "inverse functionality": found["inverse_functionality"],
            "attention": found["attention"],
            "relative attention": found["relative_attention"],
        }
    )
    if measured:
        rows = rows.assign(**{"Hits@1": found["hits@1"], "test entities": found["queries"].astype("Int64")})
    return rows.assign(id=[text.cell(name, 120) for name in found["name"]])


def _number(help: str, digits: str = "%.3f") -> Any:
    return st.column_config.NumberColumn(format=digits, width="small", help=help)


SHORT = ("relation", "importance", "triples", "Hits@1")
"""Columns of the list next to one relation."""


def _columns(found: pd.DataFrame) -> dict[str, Any]:
    """As of the table of one relation, with the importance as a bar from the lowest to the highest."""
    low, high = float(found["importance"].min()), float(found["importance"].max())
    bar = st.column_config.ProgressColumn(
        format="%.3f",
        width=115,
        min_value=min(low, 0.0),
        max_value=max(high, min(low, 0.0) + 1e-6),
        help=f"Bar from the lowest to the highest importance. {explain('importance')}",
    )
    return {**COLUMNS, "relation": st.column_config.TextColumn(width=165), "importance": bar}


COLUMNS = {
    "rank": st.column_config.NumberColumn(width=60, help="Rank by importance within the layer and channel, over both graphs and directions."),
    "importance": _number(explain("importance")),
    "band": st.column_config.TextColumn(width="small", help=explain("band")),
    "triples": st.column_config.NumberColumn(format="localized", width="small", help=explain("frequency")),
    "functionality": _number(explain("functionality")),
    "inverse functionality": _number(explain("inverse functionality")),
    "attention": _number(f"Mean over the relation's messages. {explain('attention')}"),
    "relative attention": _number(f"Mean over the relation's messages. {explain('relative attention')}", "%.2f"),
    "Hits@1": _number("Accuracy for the test entities of this graph that have the relation, as head or tail."),
    "test entities": st.column_config.NumberColumn(
        width="small", help="Number of test entities that have the relation. With few of them, Hits@1 is uncertain."
    ),
}


# One of them


def _one_relation(run: OpenRun, address: RelationsAddress, relation: Relation) -> None:
    st.subheader(f"{MARKS[relation.side]} {text.plain(relation.title)}", anchor=False)
    first = "" if address.relation else " · first of the list"
    st.caption(f"Relation of {components.graph_name(run.view, relation.side)}{first}")
    if relation.title != relation.name:
        copyable(relation.name, "Copy the identifier of the relation", key=state.widget_key(state.COPIED, relation.side, relation.name))
    rows = run.relations.everywhere(relation)
    if rows.empty:
        st.markdown("No triple has this relation, so the model has not learned it.")
        return
    _metrics(run.relations, relation, rows.iloc[0])
    with open_tab(TABS, address.tab):
        if address.tab == "importance":
            _everywhere(rows, relation)
        elif address.tab == "counterparts":
            _twins(run, relation)
        else:
            _examples(run, address, relation)


def _metrics(view: RelationView, relation: Relation, row: pd.Series) -> None:
    with st.container(horizontal=True, gap="large"):
        st.metric("Triples", f"{row['frequency']:,}", help=explain("frequency"))
        st.metric("Functionality", text.score(row["functionality"]), help=explain("functionality"))
        st.metric("Inverse", text.score(row["inverse_functionality"]), help=explain("inverse functionality"))
    hits = view.hits_of(relation)
    if hits.empty:
        st.caption("No test entity has this relation, so there is no Hits@1.")
        return
    rates = [_hits_words(row) for row in hits.sort_values("role").to_dict("records")]
    st.caption(f"Hits@1: {'; '.join(rates)}.", help=explain("Hits@1", "interval"))


def _hits_words(row: Mapping[Any, Any]) -> str:
    """'0.643 (0.624-0.662) of 30 test entities', first of all that have the relation."""
    share = text.share_with_interval(row["hits@1"], (row["hits@1_low"], row["hits@1_high"]))
    if row["role"] == "any":
        return f"{share} of {text.count(int(row['queries']), 'test entity', 'test entities')} that have the relation"
    return f"as {row['role']} {share} of {int(row['queries']):,}"


def _everywhere(rows: pd.DataFrame, relation: Relation) -> None:
    """Its place among all relations in each layer, channel and direction."""
    most, least = rows.iloc[int(rows["lower"].argmax())], rows.iloc[int(rows["lower"].argmin())]
    best, worst = (f"{text.percent(row['lower'])} in {_setting_words(row)}" for row in (most, least))
    components.figure(
        _everywhere_figure(rows),
        name=f"relation-{relation.title}",
        caption=f"Share of all relations with a lower importance: from {worst} to {best}.",
        data=rows,
        height=150 + 40 * len(rows[["layer", "channel"]].drop_duplicates()),
    )
    with components.drawn_when_open("Data as a table", state.widget_key(state.AS_TABLE, relation.index, relation.side)) as is_open:
        if not is_open:
            return
        columns = ["layer", "channel", "direction", "importance", "rank", "of", "band", "attention", "relative_attention"]
        shown = rows[columns].rename(columns={"relative_attention": "relative attention"})
        components.table(shown, name=f"relation-{relation.title}-everywhere", columns=COLUMNS)


def _setting_words(row: pd.Series) -> str:
    return f"layer {row['layer']}, {row['channel']} channel, {row['direction']}"


def _everywhere_figure(rows: pd.DataFrame) -> go.Figure:
    fig = go.Figure()
    for direction, colour in DIRECTION.items():
        part = rows[rows["direction"] == direction]
        fig.add_scatter(
            x=part["lower"],
            y=[f"layer {layer}, {channel}" for layer, channel in zip(part["layer"], part["channel"], strict=True)],
            mode="markers",
            name=direction,
            marker={"color": colour, "symbol": DIRECTION_POINTS[direction], "size": 14},
            hovertext=[
                f"importance {row['importance']:.3f}, rank {row['rank']:,} of {row['of']:,} ({row['band']})<br>"
                f"attention {row['attention']:.3f}, {row['relative_attention']:.2f} times uniform"
                for row in part.to_dict("records")
            ],
            hoverinfo="text+name",
        )
    for place in (1 / 3, 2 / 3):
        fig.add_vline(x=place, line={"width": 1, "dash": "dot", "color": UNKNOWN})
    fig.update_xaxes(
        range=[-0.04, 1.04],
        tickvals=[1 / 6, 0.5, 5 / 6],
        ticktext=list(reversed(BANDS)),
        title="share of all relations with a lower importance",
        showgrid=False,
    )
    fig.update_yaxes(autorange="reversed", type="category")
    return fig


def _twins(run: OpenRun, relation: Relation) -> None:
    twins = run.relations.twins(relation)
    if not twins:
        st.markdown("None: this model does not use relation vectors, or the other graph has no triples.")
        return
    st.caption(_twin_sentence(twins[0]), help=f"{explain('relation counterpart')} {TWIN_HELP}")
    with st.container(gap="xsmall"):
        for twin in twins:
            there = {"side": twin.relation.side, "relation": twin.relation.name}
            label = f"{MARKS[twin.relation.side]} **{text.plain(twin.relation.title)}** :gray[{_twin_words(twin)}]"
            key = state.widget_key(state.CHOICE, "counterpart", twin.relation, twin.turned)
            st.button(label, key=key, type="tertiary", on_click=state.set_parameters, args=(there,))


def _twin_sentence(twin: Twin) -> str:
    how = " (reversed: head and tail exchanged)" if twin.turned else ""
    start = f"Closest counterpart: {text.plain(twin.relation.title, 60)}{how}"
    if twin.agreement is None:
        return f"{start}. No triple has seed links at both ends, so seed links do not confirm it."
    triples = text.count(twin.seed_triples, "triple")
    return f"{start}. It connects the counterparts of {twin.agreement:.0%} of the {triples} with seed links at both ends."


def _twin_words(twin: Twin) -> str:
    parts = [f"cosine {text.score(twin.cosine)}"]
    if twin.turned:
        parts.append("reversed")
    if twin.agreement is not None:
        parts.append(f"seeds {round(twin.agreement * twin.seed_triples):,} of {twin.seed_triples:,}")
    return " · ".join(parts)


def _examples(run: OpenRun, address: RelationsAddress, relation: Relation) -> None:
    examples = run.relations.examples(relation, EXAMPLES)
    name = text.plain(relation.title, 40)
    for example in examples:
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
            pages.link(pages.ENTITY, state.entity_address(address.runs, example.head), components.entity_label(example.head))
            st.markdown(f":gray[{name} →]", width="content")
            pages.link(pages.ENTITY, state.entity_address(address.runs, example.tail), components.entity_label(example.tail))


frame.one_run(pages.RELATIONS, render)
