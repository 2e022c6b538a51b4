"""Pairs: the whole alignment as a table; every filter is in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import components, frame, pages, pair_filters, palette, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.state import ExportAddress, PairsAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.alignment import KNOWN, VERDICTS, Alignment, Known, PairOrder, Precision, Score
from engine.runs.entities import other, short_id
from engine.util.arrays import IntArray

ROWS = 100  # of a page
HEIGHT = 560  # pixels
RELATIONS = 300  # offered, the most frequent ones; others can be typed
STEP = 0.01

ORDERS: Mapping[PairOrder, str] = {
    "doubt": "least certain first",
    "probability": "probability",
    "margin": "margin to the runner-up",
    "csls": "CSLS",
    "cosine": "cosine",
    "degree": "degree",
    "claims": "competing entities",
    "label": "label, A to Z",
}
SCORES: Mapping[Score, str] = {"probability": "probability", "csls": "CSLS"}
EXPORTED = (
    "This page lists the best match of each entity. The export can have fewer pairs: it omits pairs that reviewers rejected or replaced by an "
    "accepted pair, and pairs that its own settings exclude."
)
BARS: Mapping[Known, tuple[str, str]] = {
    "seed": (palette.UNKNOWN, "x"),
    "right": (palette.RIGHT, ""),
    "wrong": (palette.WRONG, "/"),
    "probable": (palette.UNKNOWN, "+"),
    "unknown": (palette.UNKNOWN, "."),
}
"""Colour and pattern; kinds that share a colour differ in pattern."""


def render(run: OpenRun, address: PairsAddress) -> None:
    """The page."""
    alignment = run.alignments[address.side]
    if not len(alignment):
        components.empty_state("No pairs", "One of the graphs is empty, so no entity has a match. Choose another run.")
        return
    _arrange(run, address)
    _filters(run, address, alignment)
    pair_filters.chips(run, address)
    chosen = alignment.select(pair_filters.wanted(run, address))
    st.markdown(_sentence(address, alignment, chosen))
    if not len(chosen):
        components.empty_state("No pairs match the filters", "Remove a filter: each is a button above.")
        return
    _histogram(address, alignment, chosen)
    _table(run, address, alignment, alignment.ordered(chosen, address.order, reverse=address.reverse))


def _follow(key: str, parameters: Callable[[Any], pair_filters.Parameters]) -> Callable[[], None]:
    """A callback that makes parameters of the address from the widget's value."""
    return lambda: pair_filters.change(parameters(st.session_state[key]))


def _single(name: str) -> Callable[[Any], pair_filters.Parameters]:
    """A number or a switch as the parameter of this name; nothing and "off" leave it out."""
    return lambda value: {name: "yes" if value is True else None if value is None or value is False else str(value)}


# What is asked for


def _arrange(run: OpenRun, address: PairsAddress) -> None:
    """From which graph, in which order."""
    names = {side: f"{palette.PLAIN_MARKS[side]} {text.plain(run.view.graphs[side].name, 24)}" for side in SIDES}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = state.widget_key(state.CHOICE, "side", address.side, names)
        st.segmented_control(
            "Best match of each entity of",
            SIDES,
            format_func=names.__getitem__,
            default=address.side,
            required=True,
            key=key,
            on_change=_follow(key, lambda side: {"side": None if side == "source" else side, "relation": None}),
        )
        key = state.widget_key(state.CHOICE, "order", address.order)
        st.selectbox(
            "Order",
            list(ORDERS),
            index=list(ORDERS).index(address.order),
            format_func=ORDERS.__getitem__,
            key=key,
            on_change=_follow(key, lambda order: {"order": None if order == "doubt" else order}),
            width=230,
            help="Sorts all pairs, not only this page. Least certain first: probability nearest 50%, then smallest margin over the "
            f"runner-up; seed links last.\n\n{explain('calibrated probability', 'margin')}",
        )
        key = state.widget_key(state.CHOICE, "reverse", address.reverse)
        st.toggle("Reverse order", value=address.reverse, key=key, on_change=_follow(key, _single("reverse")))


def _filters(run: OpenRun, address: PairsAddress, alignment: Alignment) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        components.search_box("Search label, ID or URI", address.search, placeholder="in any script", width=300, clears=("page",))
        counts = alignment.all_counts
        offered = [known for known in KNOWN if counts[known] or known in address.known]
        labels = {known: f"{pair_filters.KNOWN_WORDS[known]} {counts[known]:,}" for known in offered}
        key = state.widget_key(state.CHOICE, "known", address.known, labels)
        st.pills(
            "Verdict",
            offered,
            selection_mode="multi",
            wrap=True,
            default=[known for known in offered if known in address.known],
            format_func=labels.__getitem__,
            key=key,
            on_change=_follow(key, lambda chosen: {"known": list(chosen) or None}),
            help="Whether known links confirm or contradict the pair. None selected: all.",
        )
        with st.popover("More filters", icon=":material/tune:"):
            _score_filters(address, alignment)
            _degree_filter(address, alignment)
            _relation_filter(run, address)
            _switches(address, alignment)


def _score_filters(address: PairsAddress, alignment: Alignment) -> None:
    if alignment.calibrated:
        _range("probability", (0.0, 1.0), (address.probability_from, address.probability_to), "calibrated probability")
    else:
        st.caption("This run has no probabilities, because there were too few validation links.")
    low, high = alignment.csls_ends
    _range("csls", (low - low % STEP, high - high % STEP + STEP), (address.csls_from, address.csls_to), "CSLS")


def _range(name: Score, ends: tuple[float, float], asked: tuple[float | None, float | None], term: str) -> None:
    low, high = sorted(min(max(end if value is None else value, ends[0]), ends[1]) for end, value in zip(ends, asked, strict=True))
    key = state.widget_key(state.CHOICE, name, asked)

    def parameters(chosen: tuple[float, float]) -> pair_filters.Parameters:
        return {
            f"{name}_from": None if chosen[0] <= ends[0] else f"{chosen[0]:.2f}",
            f"{name}_to": None if chosen[1] >= ends[1] else f"{chosen[1]:.2f}",
        }

    words = SCORES[name]
    label = words[0].upper() + words[1:]
    st.slider(label, *ends, value=(low, high), step=STEP, key=key, on_change=_follow(key, parameters), help=explain(term))


def _degree_filter(address: PairsAddress, alignment: Alignment) -> None:
    most = int(alignment.rows["degree"].max())
    asked = (("degree_from", "Degree from", address.degree_from), ("degree_to", "to", address.degree_to))
    for column, (name, label, value) in zip(st.columns(2), asked, strict=True):
        key = state.widget_key(state.CHOICE, name, value)
        column.number_input(
            label,
            min_value=0,
            max_value=most,
            value=None if value is None else min(max(value, 0), most),
            step=1,
            key=key,
            placeholder="any",
            on_change=_follow(key, _single(name)),
            help=explain("degree"),
        )


def _relation_filter(run: OpenRun, address: PairsAddress) -> None:
    profile = run.relation_profiles[address.side]
    frequency = dict(zip(profile["name"], profile["triples"], strict=True))
    options = list(frequency)[:RELATIONS]
    if address.relation is not None and address.relation not in options:
        options.append(address.relation)
    labels = text.distinct_labels({name: f"{text.cell(short_id(name), 60)} ({frequency.get(name, 0):,})" for name in options})
    key = state.widget_key(state.CHOICE, "relation", address.side, address.relation, labels)
    st.selectbox(
        "Relation of the entity",
        options,
        index=None if address.relation is None else options.index(address.relation),
        format_func=lambda name: labels.get(name, name),  # what was typed is no option
        key=key,
        placeholder="any",
        accept_new_options=len(frequency) > RELATIONS,
        on_change=_follow(key, lambda name: {"relation": name or None}),
        help="The entity has the relation as head or tail. The most frequent relations are listed; type the name of any other.",
    )


def _switches(address: PairsAddress, alignment: Alignment) -> None:
    switches = [("conflicts", "Only conflicts", address.conflicts, explain("conflict"))]
    if alignment.contradictions or address.contradictions:
        switches.append(("contradictions", "Only contradictions", address.contradictions, explain("contradiction")))
    if alignment.has_rounds or address.added:
        switches.append(("added", "Only pairs added in a round", address.added, explain("semi")))
    for name, label, value, help in switches:
        key = state.widget_key(state.CHOICE, name, value)
        st.toggle(label, value=value, key=key, help=help, on_change=_follow(key, _single(name)))


# What is found


def _sentence(address: PairsAddress, alignment: Alignment, chosen: IntArray) -> str:
    """How many, what a pair is here, and how many of them are correct where that is known."""
    shown = f"**{len(chosen):,}** of {text.count(len(alignment), 'pair')}" if len(chosen) < len(alignment) else f"**All {len(alignment):,}** pairs"
    shown += f", one per {address.side} entity"
    counts = alignment.counts(chosen)
    seeds = f" {text.count(counts['seed'], 'seed pair')} not counted." if counts["seed"] else ""
    if address.known:
        return f"{shown}. Filtered by verdict, so precision is not shown."
    precision = alignment.precision(chosen)
    if not precision.judged:
        return f"{shown}. None of them is covered by a validation or test link, so precision is not known.{seeds}"
    return f"{shown}. {_precision_words(precision)}{seeds}"


def _precision_words(precision: Precision) -> str:
    low, high = precision.interval
    counted = f"{precision.right:,} of {precision.judged:,}; 95% interval {low:.1%} to {high:.1%}"
    return f"**{precision.share:.1%}** correct where a link is known ({counted})."


def _histogram(address: PairsAddress, alignment: Alignment, chosen: IntArray) -> None:
    """How the scores are spread, and a click to look into a bar."""
    score: Score = "probability" if alignment.calibrated else "csls"
    middle = alignment.median(chosen, score)
    if middle is None:
        st.caption("Seed links have no probability, so there is no distribution to show.")
        return
    data = alignment.histogram(chosen, score)
    points = components.figure(
        _bars(data, score),
        name=f"pairs-by-{score}",
        caption=f"Median {SCORES[score]}: {f'{middle:.0%}' if score == 'probability' else text.score(middle)}. Click a bar to list its pairs.",
        data=data,
        height=230,
        key=state.widget_key(state.PAIR_FIGURE, address),
        on_select="rerun",
    )
    if points:
        bar = data.iloc[int(points[0]["point_index"])]
        pair_filters.change({f"{score}_from": f"{bar['low']:.4f}", f"{score}_to": f"{bar['high']:.4f}"})
        st.rerun()


def _bars(data: pd.DataFrame, score: Score) -> go.Figure:
    fig = go.Figure()
    width = data["high"] - data["low"]
    for known, (colour, pattern) in BARS.items():
        if data[known].any():
            fig.add_bar(
                x=data["low"] + width / 2,
                y=data[known],
                width=width * 0.92,
                name=pair_filters.KNOWN_WORDS[known],
                marker={"color": colour, "pattern": {"shape": pattern, "size": 5, "solidity": 0.3}},
                customdata=data[["low", "high"]],
                hovertemplate="%{y:,} from %{customdata[0]:.2f} to %{customdata[1]:.2f}",
            )
    fig.update_layout(barmode="stack", showlegend=True)
    fig.update_xaxes(title=SCORES[score])
    fig.update_yaxes(title="pairs")
    return fig


def _table(run: OpenRun, address: PairsAddress, alignment: Alignment, ordered: IntArray) -> None:
    last = -(-len(ordered) // ROWS)
    page = min(max(address.page, 1), last)
    start = (page - 1) * ROWS
    positions = ordered[start : start + ROWS]
    row = components.table(
        _rows(run, alignment, positions),
        name=f"pairs-{run.card.run}",
        pinned=("entity", "match"),
        whole=lambda: alignment.described(ordered),
        key=state.widget_key(state.PAIR_TABLE, address, page),
        on_select="rerun",
        columns=_columns(run, address.side),
        height=HEIGHT if len(positions) > 14 else "auto",
    )
    st.caption(
        f"Rows {start + 1:,} to {start + len(positions):,} of {len(ordered):,}. Select a row to open the pair. Column headers "
        "sort this page only; **Order** sorts all pairs. The download contains all pairs with their URIs."
    )
    pages.link(pages.EXPORT, pair_filters.carried(ExportAddress, address), "Export this selection", icon=":material/file_export:", help=EXPORTED)
    if last > 1:
        key = state.widget_key(state.CHOICE, "page", page, last)
        st.pagination(last, default=page, key=key, on_change=_follow(key, lambda chosen: {"page": str(chosen) if chosen > 1 else None}))
    if row is not None:
        entity, match = alignment.rows.iloc[positions[row]][["entity", "match"]]
        view = run.view
        pages.go(
            pages.ENTITY,
            state.entity_address(address.runs, view.entity(address.side, int(entity)), view.entity(other(address.side), int(match))),
        )


def _rows(run: OpenRun, alignment: Alignment, positions: IntArray) -> pd.DataFrame:
    """A page of the table; what this run has for no pair has no column."""
    part = alignment.rows.iloc[positions]
    own, theirs = run.view.graphs[alignment.side], run.view.graphs[other(alignment.side)]
    verdicts = {verdict: components.verdict_cell(verdict) for verdict in VERDICTS}
    columns = {
        "entity": [text.cell(own.title(entity)) for entity in part["entity"]],
        "match": [text.cell(theirs.title(entity)) for entity in part["match"]],
        "verdict": part["verdict"].astype(str).map(verdicts).to_numpy(),
        "added": [f"round {number}" if number else "" for number in part["added"]] if alignment.has_rounds else None,
        "probability": part["probability"].to_numpy() if alignment.calibrated else None,
        "margin": part["margin"].to_numpy(),
        "CSLS": part["csls"].to_numpy(),
        "cosine": part["cosine"].to_numpy(),
        "names": part["names"].to_numpy() if alignment.named else None,
        "degree": part["degree"].to_numpy(),
        "match degree": part["match_degree"].to_numpy(),
        "competing": part["claims"].to_numpy(),
    }
    return pd.DataFrame({name: column for name, column in columns.items() if column is not None})


def _columns(run: OpenRun, side: Side) -> dict[str, Any]:
    """Heads name the graphs; widths leave room for both labels at 1,280 pixels."""
    config = st.column_config
    heads = {one: f"{palette.PLAIN_MARKS[one]} {text.cell(run.view.graphs[one].name, 30)}" for one in SIDES}
    return {
        "entity": config.TextColumn(heads[side], width=170),
        "match": config.TextColumn(heads[other(side)], width=170),
        "verdict": config.TextColumn(width=115, help="Whether known links confirm or contradict the pair."),
        "added": config.TextColumn(width=62, help=explain("semi")),
        "probability": config.NumberColumn(format="percent", width=80, help=explain("calibrated probability")),
        "margin": config.NumberColumn(format="%.3f", width=62, help=explain("margin")),
        "CSLS": config.NumberColumn(format="%.3f", width=62, help=explain("CSLS")),
        "cosine": config.NumberColumn(format="%.3f", width=62, help=explain("cosine")),
        "names": config.NumberColumn(format="%.3f", width=62, help="Name similarity."),
        "degree": config.NumberColumn(format="localized", width=62, help=explain("degree")),
        "match degree": config.NumberColumn(format="localized", width=95, help="Degree of the match."),
        "competing": config.NumberColumn(format="localized", width=82, help=f"Number of entities with this best match. {explain('conflict')}"),
    }


frame.one_run(pages.PAIRS, render)
