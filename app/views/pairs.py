"""Pairs: the whole alignment as a table next to its filters; every filter is in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from app import components, facets, frame, pages, pair_dialog, pair_filters, palette, state, text
from app.cache import OpenRun
from app.glossary import explain, probability_term
from app.state import ExportAddress, PairsAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.alignment import Alignment, PairOrder, Precision
from engine.runs.entities import other
from engine.runs.verdicts import VERDICTS, added_cell
from engine.util.arrays import IntArray

ROWS = 100  # of a page
HEIGHT = 560  # pixels

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
EXPORTED = (
    "This page lists the best match of each entity. The export can have fewer pairs: it omits pairs that reviewers rejected or replaced by an "
    "accepted pair, and pairs that its own settings exclude."
)
ALWAYS = ("entity", "match", "probability", "verdict", "margin", "degree")
"""Columns that are shown without "All columns"."""


def render(run: OpenRun, address: PairsAddress) -> None:
    """The page."""
    alignment = run.alignments[address.side]
    if not len(alignment):
        components.empty_state("No pairs", "One of the graphs is empty, so no entity has a match. Choose another run.")
        return
    _arrange(run, address)
    filters, found = st.columns([1, 3], gap="medium")
    with found:
        pair_filters.chips(run, address)
        parts = alignment.parts(pair_filters.wanted(run, address))
    with filters:
        facets.show(run, address, alignment, parts)
    with found:
        chosen = alignment.passing(parts)
        st.markdown(_sentence(address, alignment, chosen))
        if len(chosen):
            _table(run, address, alignment, alignment.ordered(chosen, address.order, reverse=address.reverse))
        else:
            components.empty_state("No pairs match the filters", "Remove a filter: each is a button above.")


# What is asked for


def _arrange(run: OpenRun, address: PairsAddress) -> None:
    """From which graph, in which order, with which columns."""
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
            on_change=pair_filters.follow(key, lambda side: {"side": None if side == "source" else side, "relation": None}),
        )
        key = state.widget_key(state.CHOICE, "order", address.order)
        orders = {**ORDERS, "probability": pair_filters.probability_word(run, address.side)}
        estimated = run.alignments[address.side].calibrated and run.view.unchecked_probabilities
        st.selectbox(
            "Order",
            list(orders),
            index=list(orders).index(address.order),
            format_func=orders.__getitem__,
            key=key,
            on_change=pair_filters.follow(key, lambda order: {"order": None if order == "doubt" else order}),
            width=230,
            help="Sorts all pairs, not only this page. Least certain first: probability nearest 50%, then smallest margin over the "
            f"runner-up; seed links last.\n\n{explain(probability_term(estimated), 'margin')}",
        )
        for name, label, value in (("reverse", "Reverse order", address.reverse), ("wide", "All columns", address.wide)):
            key = state.widget_key(state.CHOICE, name, value)
            st.toggle(label, value=value, key=key, on_change=pair_filters.follow(key, pair_filters.single(name)))


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


def _table(run: OpenRun, address: PairsAddress, alignment: Alignment, ordered: IntArray) -> None:
    last = -(-len(ordered) // ROWS)
    page = min(max(address.page, 1), last)
    start = (page - 1) * ROWS
    positions = ordered[start : start + ROWS]
    key = state.widget_key(state.PAIR_TABLE, address, page)
    words = (
        f"Rows {start + 1:,} to {start + len(positions):,} of {len(ordered):,}. Select a row for details. Column headers sort this page only; "
        "**Order** sorts all pairs. The download contains all pairs with their URIs."
    )
    components.table(
        _rows(run, alignment, positions, wide=address.wide),
        name=f"pairs-{run.card.run}",
        pinned=("entity", "match"),
        whole=lambda: alignment.described(ordered),
        key=key,
        on_select=lambda: pair_dialog.follow_row(key),
        columns=_columns(run, address.side),
        height=HEIGHT if len(positions) > 14 else "auto",
        above=lambda: st.caption(words),
    )
    pages.link(pages.EXPORT, pair_filters.carried(ExportAddress, address), "Export this selection", icon=":material/file_export:", help=EXPORTED)
    if last > 1:
        turner = state.widget_key(state.CHOICE, "page", page, last)
        turned = pair_filters.follow(turner, lambda chosen: {"page": str(chosen) if chosen > 1 else None})
        st.pagination(last, default=page, key=turner, on_change=turned)
    rows = alignment.rows.iloc[positions][["entity", "match"]].to_numpy()
    ends = rows if address.side == "source" else rows[:, ::-1]
    pairs = [(int(source), int(target)) for source, target in ends.tolist()]
    pair_dialog.show(run, address.runs, address.side, pairs, key, start + 1, len(ordered))


def _rows(run: OpenRun, alignment: Alignment, positions: IntArray, *, wide: bool) -> pd.DataFrame:
    """A page of the table; what this run has for no pair has no column, and only a ``wide`` table has all others."""
    part = alignment.rows.iloc[positions]
    own, theirs = run.view.graphs[alignment.side], run.view.graphs[other(alignment.side)]
    verdicts = {verdict: components.verdict_cell(verdict) for verdict in VERDICTS}
    columns = {
        "entity": [text.cell(own.title(entity)) for entity in part["entity"]],
        "match": [text.cell(theirs.title(entity)) for entity in part["match"]],
        "probability": part["probability"].to_numpy() if alignment.calibrated else None,
        "verdict": part["verdict"].astype(str).map(verdicts).to_numpy(),
        "added": [added_cell(number) for number in part["added"]] if alignment.has_rounds else None,
        "margin": part["margin"].to_numpy(),
        "CSLS": part["csls"].to_numpy(),
        "cosine": part["cosine"].to_numpy(),
        "names": part["names"].to_numpy() if alignment.named else None,
        "degree": part["degree"].to_numpy(),
        "match degree": part["match_degree"].to_numpy(),
        "competing": part["claims"].to_numpy(),
    }
    return pd.DataFrame({name: column for name, column in columns.items() if column is not None and (wide or name in ALWAYS)})


def _columns(run: OpenRun, side: Side) -> dict[str, Any]:
    """Heads name the graphs; widths leave room for both labels at 1,280 pixels, and for the probability beside them at 360."""
    config = st.column_config
    heads = {one: f"{palette.PLAIN_MARKS[one]} {text.cell(run.view.graphs[one].name, 30)}" for one in SIDES}
    return {
        "entity": config.TextColumn(heads[side], width=124),
        "match": config.TextColumn(heads[other(side)], width=124),
        "verdict": config.TextColumn(width=158, help="Whether known links confirm or contradict the pair."),
        "added": config.TextColumn(width=62, help=explain("semi")),
        "probability": components.probability_column(run.view, alignment="left"),
        "margin": config.NumberColumn(format="%.3f", width=62, help=explain("margin")),
        "CSLS": config.NumberColumn(format="%.3f", width=62, help=explain("CSLS")),
        "cosine": config.NumberColumn(format="%.3f", width=62, help=explain("cosine")),
        "names": config.NumberColumn(format="%.3f", width=62, help="Name similarity."),
        "degree": config.NumberColumn(format="localized", width=62, help=explain("degree")),
        "match degree": config.NumberColumn(format="localized", width=95, help="Degree of the match."),
        "competing": config.NumberColumn(format="localized", width=82, help=f"Number of entities with this best match. {explain('conflict')}"),
    }


frame.one_run(pages.PAIRS, render)
