"""Entity: what is this, and what does it match?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from app import cache, charts, components, enter_key, frame, light_table, pages, side_by_side, state, text
from app.cache import OpenRun
from app.facing import neighbourhoods
from app.glossary import explain
from app.palette import PLAIN_MARKS
from app.state import EntityAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import EngineError
from engine.explore.description import known_facts
from engine.explore.neighbourhood import Neighbour, neighbourhood
from engine.runs.entities import LONGEST_QUERY, Entity, other
from engine.runs.verdicts import CERTAIN_LINKS, PROBABLE, Verdict, added_cell
from engine.runs.view import Match, Pool

SEARCH_LABEL = "Search by label, ID or URI"
RESULTS = 50
TOP = 10
FACTS = 100
SUGGESTIONS = 6
ROWS_SHOWN = 320  # pixels
VERDICT_WIDTH = 158  # pixels, for "correct (validation)"

OPTIONAL_COLUMNS = ("probability", "verdict", "names", "values", "added")
"""Columns that only some runs have something for."""
MORE_COLUMNS = frozenset({"rank", "cosine", "names", "values", "added", "id"})
"""Columns that are shown on request."""
CONFIRMED: frozenset[Verdict] = frozenset({*CERTAIN_LINKS, PROBABLE})
"""Verdicts that a row of the table shows: that another candidate is correct is seen in its own row."""


def render(opened: OpenRun, address: EntityAddress) -> None:
    """The page."""
    names = {side: f"{PLAIN_MARKS[side]} {text.cell(opened.view.graphs[side].name, 20)}" for side in SIDES}
    _search(opened, address, names)
    entity = None if address.entity is None else opened.view.resolve(address.entity, address.side)
    if entity is None:
        _suggestions(opened, address)
    else:
        _entity_and_match(opened, entity, address)


# Choosing


@st.fragment
def _search(opened: OpenRun, address: EntityAddress, names: Mapping[Side, str]) -> None:
    """A box whose list of results comes from the server; emptied when another entity is opened. Reads nothing of the run that can be damaged."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    typed = row.text_input(
        SEARCH_LABEL,
        key=state.widget_key(state.SEARCH, address.runs[0], address.side, address.entity),
        max_chars=LONGEST_QUERY,
        placeholder="for example Bavaria, or the last part of a URI",
        icon=":material/search:",
        live="300ms",
    )
    side = row.segmented_control(
        "In", SIDES, format_func=names.__getitem__, key=state.widget_key(state.SEARCH_SIDE, names), help="None selected: both graphs."
    )
    _open_the_only_result(opened, address, side)
    if not typed or not typed.strip():
        return
    found = opened.view.search(typed, side, RESULTS)
    if not found:
        st.info(
            f"No entity matches “{text.plain(typed, 60)}”. Try a part of the name, another spelling, or the other graph.",
            icon=":material/search_off:",
        )
        return
    with st.container(border=True, height=320 if len(found) > 6 else "content", gap="xsmall"):
        all_shown = len(found) < RESULTS
        st.caption(text.count(len(found), "result") if all_shown else f"First {RESULTS} results; type more to narrow them down.")
        for entity in found:
            components.entity_link(address.runs, entity, detail=f" :gray[· {text.count(entity.degree, 'triple')}]")


def _open_the_only_result(opened: OpenRun, address: EntityAddress, side: Side | None) -> None:
    """Enter in the search box opens the result where there is one only; what was typed last counts, though its results may not be shown yet."""
    typed = enter_key.pressed_in(SEARCH_LABEL, state.widget_key(state.SEARCH, "enter", address.runs[0], address.side, address.entity))
    if typed and typed.strip() and len(typed) <= LONGEST_QUERY:
        found = opened.view.search(typed, side, 2)
        if len(found) == 1:
            pages.go(pages.ENTITY, state.entity_address(address.runs, found[0]))


def _suggestions(opened: OpenRun, address: EntityAddress) -> None:
    st.markdown("Search above, or start with one of the entities with the most triples:")
    for column, side in zip(st.columns(2), SIDES, strict=True):
        with column, st.container(border=True):
            st.caption(components.graph_name(opened.view, side))
            found = opened.view.well_connected(side, SUGGESTIONS)
            for entity in found:
                components.entity_link(address.runs, entity)
            if not found:
                st.markdown("No entity of this graph has a label; search by ID.")


# The entity and its matches


def _entity_and_match(opened: OpenRun, entity: Entity, address: EntityAddress) -> None:
    left, right = st.columns([6, 7], gap="large")
    with right:
        pool = components.pool_choice(opened.view, [entity], address.pool)
        matches = opened.view.matches(entity.side, entity.index, TOP, pool)
        match = _chosen_match(opened, entity, address, matches)
        _match_table(opened, entity, matches, match, pool)
    with left:
        _facts(opened, entity, address)
    if match is None and opened.view.is_zero(entity.side, entity.index):
        components.empty_state("No match", "The embedding of this entity is a zero vector, so all candidates are equally similar.")
        return
    if match is None:
        components.empty_state("No candidates", "The other graph has no entities.")
        return
    _pair(opened, entity, match, pool, address)


def _facts(opened: OpenRun, entity: Entity, address: EntityAddress) -> None:
    """What the data has of the entity alone."""
    components.entity_heading(opened.view, entity, () if entity.label else known_facts(opened.adjacency, entity))
    around = neighbourhood(opened.adjacency, entity.side, entity.index, FACTS)
    attributes = opened.view.attributes(entity.side, entity.index)
    triples, facts = st.tabs([text.count(around.total, "neighbour"), text.count(len(attributes), "attribute")])
    with triples:
        if around.total:
            data = pd.DataFrame([_triple_row(neighbour) for neighbour in around.neighbours]).dropna(axis=1, how="all")
            columns = {
                "relation": st.column_config.TextColumn(width=108),
                "neighbour": st.column_config.TextColumn(width=140),
                "attention": st.column_config.NumberColumn(format="percent", width="small", help=explain("attention")),
            }
            components.table(
                data,
                name="neighbours",
                columns=columns,
                height=ROWS_SHOWN if around.total > 8 else "auto",
                share_decimals=3,
                light=True,
            )
        else:
            st.markdown("This entity has no triples, so the structure gives no evidence for its matches.")
        if around.hidden:
            whole = replace(address, side=entity.side, entity=entity.uri, listed=entity.side)
            pages.link(pages.ENTITY, whole, f"Show all {around.total:,} in the table below")
    with facts:
        if attributes:
            components.table(components.attribute_table(attributes), name=f"attributes-{entity.side}", light=True)
        else:
            st.markdown("This entity has no attributes.")


def _triple_row(neighbour: Neighbour) -> dict[str, object]:
    return {
        "relation": charts.edge_words(neighbour.edges),
        "neighbour": text.cell(neighbour.entity.title),
        "attention": neighbour.attention,
        "triples": neighbour.entity.degree,
    }


def _chosen_match(opened: OpenRun, entity: Entity, address: EntityAddress, matches: list[Match]) -> Entity | None:
    """The match of the address, else the best one."""
    across = other(entity.side)
    if address.match is not None:
        return opened.view.resolve(address.match, across)
    return opened.view.entity(across, matches[0].entity) if matches else None


def _match_table(opened: OpenRun, entity: Entity, matches: list[Match], match: Entity | None, pool: Pool) -> None:
    across = other(entity.side)
    more_key = state.widget_key(state.MORE_COLUMNS, "matches")
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(f"Best matches in {components.graph_name(opened.view, across)}", anchor=False, width="content")
        more = st.toggle("More columns", key=more_key, help="Also rank, cosine, similarity of names and values, round and ID.")
    size = opened.view.pool_size(across, pool)
    words = f"By CSLS, {components.pool_words(opened.view, entity.side, pool, size)}. Select a row to compare it below."
    key = state.widget_key(state.MATCH_TABLE, opened.card.run, entity.side, entity.uri, pool)

    def follow() -> None:
        row = light_table.clicked_row(key, len(matches))
        state.set_parameter(state.MATCH, None if row is None else matches[row].uri)

    listed = pd.DataFrame(_match_rows(opened, across, matches, more))
    narrow = "verdict" in listed and all(match.label for match in matches)
    components.table(
        listed,
        name="matches",
        above=lambda: st.caption(words),
        key=key,
        on_select=follow,
        light=True,
        chosen=next((row for row, candidate in enumerate(matches) if match is not None and candidate.entity == match.index), None),
        columns={
            "match": st.column_config.TextColumn(width=130 if narrow else 240),
            "rank": st.column_config.NumberColumn(width=50, help=explain("rank")),
            "verdict": st.column_config.TextColumn(width=VERDICT_WIDTH, help="Empty where no known link confirms the pair."),
            "CSLS": st.column_config.NumberColumn(format="%.3f", width="small", help=explain("CSLS")),
            "cosine": st.column_config.NumberColumn(format="%.3f", width="small", help=explain("cosine")),
            "names": st.column_config.NumberColumn(format="%.3f", width="small", help="Name similarity."),
            "values": st.column_config.NumberColumn(format="%.3f", width="small", help="Similarity of other attribute values."),
            "probability": components.probability_column(opened.view),
            "added": st.column_config.TextColumn(help="The round that first added the pair to training; start: training started from it."),
        },
    )


def _match_rows(opened: OpenRun, across: Side, matches: list[Match], more: bool) -> list[dict[str, object]]:
    """A row per match; what this run has for none of them has no column. ``more``: with the columns that few readers need."""
    rows = [_match_row(opened, candidate, opened.view.entity(across, candidate.entity)) for candidate in matches]
    left_out = {name for name in OPTIONAL_COLUMNS if all(row[name] is None for row in rows)} | (set() if more else MORE_COLUMNS)
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def _match_row(opened: OpenRun, match: Match, candidate: Entity) -> dict[str, object]:
    return {
        "match": _title_and_facts(opened, candidate),
        "probability": match.probability,
        "CSLS": match.csls,
        "verdict": components.verdict_cell(match.verdict) if match.verdict in CONFIRMED else None,
        "rank": match.rank,
        "cosine": match.cosine,
        "names": match.names,
        "values": match.values or None,
        "added": None if match.added is None else added_cell(match.added),
        "id": text.cell(candidate.short_id),
    }


def _title_and_facts(opened: OpenRun, entity: Entity) -> str:
    """The label; of an entity without one its id, and what is known of it."""
    facts = () if entity.label else known_facts(opened.adjacency, entity)
    return text.cell(f"{entity.title} ({', '.join(facts)})" if facts else entity.title)


# The pair


def _pair(opened: OpenRun, entity: Entity, match: Entity, pool: Pool, address: EntityAddress) -> None:
    source, target = (entity, match) if entity.side == "source" else (match, entity)
    components.pair_header(opened.view, opened.view.pair(source.index, target.index, pool), address.runs, entity.side, pages.ENTITY)
    components.unlabelled_notes(opened.adjacency, [match])
    _other_runs(entity, match, pool, address)
    st.subheader("Values side by side", anchor=False)
    side_by_side.values(opened, source, target)
    neighbourhoods(opened, address, source, target)


def _other_runs(entity: Entity, match: Entity, pool: Pool, address: EntityAddress) -> None:
    """What the other open runs make of the same entity; each line opens it there."""
    if len(address.runs) < 2:
        return
    with st.container(border=True, gap="xsmall"):
        st.caption("This entity in the other open runs:")
        for run in address.runs[1:]:
            try:
                words = _in_run(cache.open_listed(run), entity, match, pool)
            except EngineError as error:
                components.show_error(error)
                continue
            order = (run, *(one for one in address.runs if one != run))
            pages.link(pages.ENTITY, state.entity_address(order, entity, match, pool), words)


def _in_run(opened: OpenRun, entity: Entity, match: Entity, pool: Pool) -> str:
    """'in semi: rank 1, correct; best match ..'."""
    view = opened.view
    pair = (entity.index, match.index) if entity.side == "source" else (match.index, entity.index)
    (best,) = view.matches(entity.side, entity.index, 1, pool)
    scored = view.pair(*pair, pool)
    rank = scored.rank_from_source if entity.side == "source" else scored.rank_from_target
    own = f"in **{text.plain(opened.card.variant, 20)}**: rank {rank:,}"
    words = components.verdict_cell(best.verdict)
    if best.entity != match.index:
        words = f"best match {components.entity_label(view.entity(match.side, best.entity))}, {words}"
    return f"{own}, {words}, CSLS {text.score(scored.csls)} :gray[{text.plain(opened.card.run, 60)}]"


frame.one_run(pages.ENTITY, render)
