"""A pair of a list in a drawer at the side: what it is and why, without losing the place in the list."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import components, explained, pages, side_by_side, state, text
from app.cache import OpenRun
from app.state import ExplainAddress, ReviewAddress
from engine.data.knowledge_graph import Side
from engine.errors import RunError
from engine.runs.view import PairScore

Rows = Sequence[tuple[int, int]]


def follow_row(table: str) -> None:
    """For the table of a list: open the row that was chosen; a row that is chosen no more closes nothing, for nothing is open then."""
    rows = st.session_state[table]["selection"]["rows"]
    _close()
    if rows:
        st.session_state[state.OPEN_PAIR] = table, rows[0]


def show(run: OpenRun, runs: Sequence[str], side: Side, pairs: Rows, table: str, first: int, total: int) -> None:
    """The drawer, where a row of this table is open.

    Args:
        run: the main run.
        runs: the open ones, for links.
        side: the graph whose entities' matches are listed.
        pairs: source and target of each row that is listed.
        table: key of the table's widget.
        first: number of the first row among all, from 1.
        total: how many there are in all.
    """
    asked, _ = st.session_state.get(state.OPEN_PAIR, ("", 0))
    chosen = st.session_state.get(table)  # empty again where the reader has been on another page meanwhile
    if asked == table and chosen and chosen["selection"]["rows"]:
        _drawer(run, tuple(runs), side, pairs, table, first, total)


def _close() -> None:
    st.session_state.pop(state.OPEN_PAIR, None)


@st.dialog("Pair", width="medium", position="right", icon=":material/compare_arrows:", on_dismiss=_close)
def _drawer(run: OpenRun, runs: tuple[str, ...], side: Side, pairs: Rows, table: str, first: int, total: int) -> None:
    """The pair, and the ones before and after it."""
    _, asked = st.session_state.get(state.OPEN_PAIR, (table, 0))
    row = min(max(asked, 0), len(pairs) - 1)
    with components.errors_shown(way_on=False):
        pair = run.view.pair(*pairs[row])
        _turn(table, row, len(pairs), f"Row {first + row:,} of {total:,}")
        st.markdown(f"### {components.entity_label(pair.source)} ↔ {components.entity_label(pair.target)}")
        with st.container(horizontal=True):
            components.verdict_badge(pair.verdict, pair.added)
            components.review_badge(run.view, pair)
        st.markdown(components.score_line(run.view, pair, side), help=components.score_help(run.view, pair))
        _links(runs, pair, side)
        components.unlabelled_notes(run.adjacency, [pair.source, pair.target])
        _why(run, pair)
        side_by_side.values(run, pair.source, pair.target)
        side_by_side.neighbours(run, pair.source, pair.target)
        components.other_links(run.view, pair, runs)


def _turn(table: str, row: int, rows: int, words: str) -> None:
    """To the pair before or after this one on the page of the list."""

    def turn(to: int) -> None:
        st.session_state[state.OPEN_PAIR] = table, to

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, icon, to in (("Previous", ":material/chevron_left:", row - 1), ("Next", ":material/chevron_right:", row + 1)):
            key = state.widget_key(state.OPEN_PAIR, table, label)
            st.button(label, icon=icon, type="tertiary", disabled=not 0 <= to < rows, key=key, on_click=turn, args=(to,))
        st.caption(words)


def _links(runs: tuple[str, ...], pair: PairScore, side: Side) -> None:
    """Where the pair can be looked at more closely, and decided."""
    source, target = pair.source.uri, pair.target.uri
    ends = (pair.source, pair.target) if side == "source" else (pair.target, pair.source)
    with st.container(horizontal=True):
        pages.link(pages.EXPLAIN, ExplainAddress(runs, source=source, target=target, side=side), "Open in Explain", icon=pages.EXPLAIN.icon)
        pages.link(pages.ENTITY, state.entity_address(runs, *ends), "Open on Entity", icon=pages.ENTITY.icon)
        pages.link(pages.REVIEW, ReviewAddress(runs, source=source, target=target), "Review this pair", icon=pages.REVIEW.icon)


def _why(run: OpenRun, pair: PairScore) -> None:
    """The verdict and the facts that it rests on, as on the page Explain."""
    try:
        with st.spinner("Explaining the score…"):
            found = explained.explanation(run, pair.source.index, pair.target.index, pair.pool)
    except RunError as error:  # without weights, for example
        st.caption(f":material/info: {text.plain(text.without_places(str(error)), 400)}")
        return
    explained.summary(run, found, "**{}**")
