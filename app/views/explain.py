"""Explain: how a pair's score is made up, and how it compares with other candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import alternatives, cache, components, evidence_table, explained, frame, pages, removal, score_breakdown, side_by_side, state, text
from app.cache import OpenRun
from app.glossary import explain as term
from app.palette import PLAIN_MARKS
from app.state import ExplainAddress, ExplainTab
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import EngineError, EntityError
from engine.explanation import Context, Explanation, context
from engine.explanation.report import rounds_words
from engine.runs.entities import Entity
from engine.runs.view import PairScore, RunView

TABS: Final[Mapping[ExplainTab, str]] = {
    "overview": "Overview",
    "score": "Score",
    "evidence": "Evidence",
    "what-if": "What if",
    "alternatives": "Alternatives",
    "other-runs": "Other runs",
}
STARTS: Final = 6


def render(run: OpenRun, address: ExplainAddress) -> None:
    """The page: one line and a few facts on the pair, then the part that is asked for; the others are not computed."""
    choices = _search(run, address)
    entities = components.asked_pair(run.view, address.source, address.target, address.pool)
    if entities is None:
        _starts(run, address)
        return
    source, target = entities
    with choices:
        address = replace(address, pool=components.pool_choice(run.view, entities, address.pool))
    with st.spinner("Explaining the score…"):
        found = explained.explanation(run, source.index, target.index, address.pool)
    components.pair_header(run.view, found.pair, address.runs, address.side, pages.EXPLAIN)
    components.unlabelled_notes(run.adjacency, entities)
    explained.summary(run, found, "#### {}")
    for note in found.notes:
        st.caption(f":material/info: {text.plain(note, 400)}")
    _tabs(run, found, address)


def _tabs(run: OpenRun, found: Explanation, address: ExplainAddress) -> None:
    """The parts of the page. The open one is in the address; a name that is no tab never gets here."""
    open_tab = address.tab or address.suggested_tab
    if open_tab != "overview":
        state.set_parameter("tab", open_tab)  # so that it stays open when what suggested it is gone
    key = state.widget_key(state.CHOICE, "explain-tabs")
    st.session_state[key] = TABS[open_tab]

    def follow() -> None:
        chosen = next((tab for tab, label in TABS.items() if label == st.session_state[key]), None)
        state.show_address(replace(ExplainAddress.read(), tab=chosen))  # with what was chosen in the open tab meanwhile

    content: Mapping[ExplainTab, Callable[[], None]] = {
        "overview": lambda: _overview(run, found, address),
        "score": lambda: score_breakdown.details(run, found, address),
        "evidence": lambda: evidence_table.evidence(run, address, found),
        "what-if": lambda: removal.what_if(run, address, found),
        "alternatives": lambda: alternatives.alternatives(run, address, found.pair),
        "other-runs": lambda: _elsewhere(run, address, found.pair),
    }
    for (tab, draw), container in zip(content.items(), st.tabs(list(TABS.values()), key=key, on_change=follow), strict=True):
        if tab == open_tab:
            with container:
                draw()


# Which pair


def _search(run: OpenRun, address: ExplainAddress) -> DeltaGenerator:
    """Both entities, by label, id or URI; the second may stay empty. Returns the row, for further choices."""
    row = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    with row:
        for side in SIDES:
            asked = address.source if side == "source" else address.target
            components.search_box(
                f"{PLAIN_MARKS[side]} Entity of the {side}",
                asked,
                shown=components.readable_name(run.view, asked, side),
                placeholder="empty: best match",
                help="A label, an ID or a URI. Empty: the best match of the other entity.",
                name=side,
                clears=("against", "without"),
            )
    return row


def _starts(run: OpenRun, address: ExplainAddress) -> None:
    """Without a pair: some to begin with."""
    components.empty_state("Which pair?", "Name an entity above, open a pair from the Pairs or the Entity page, or begin with one of these.")
    best = run.view.best["source"]
    usual = [(run.view.entity("source", index), run.view.entity("target", best[index])) for index in list(best)[:STARTS]]
    pairs = [*_with_their_matches(run, address), *usual]
    for source, target in list(dict.fromkeys(pairs))[:STARTS]:
        ends = replace(address, source=source.uri, target=target.uri, against=None, without=(), tab=None)
        pages.link(pages.EXPLAIN, ends, components.pair_label(source, target))


def _with_their_matches(run: OpenRun, address: ExplainAddress) -> Iterator[tuple[Entity, Entity]]:
    """The entities that the address names, which make no pair with each other: each with its best match."""
    for words in (address.source, address.target):
        with suppress(EntityError):
            entity = run.view.resolve(words or "")
            if (match := components.best_match(run.view, entity, address.pool)) is not None:
                yield (entity, match) if entity.side == "source" else (match, entity)


# The tabs that are short


def _overview(run: OpenRun, found: Explanation, address: ExplainAddress) -> None:
    """Values next to each other, and the score in a few bars."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Side by side**")
        side_by_side.values(run, found.pair.source, found.pair.target)
        side_by_side.neighbours(run, found.pair.source, found.pair.target)
    with right:
        score_breakdown.groups(found, address)


def _elsewhere(run: OpenRun, address: ExplainAddress, pair: PairScore) -> None:
    """The rounds that trained on the pair, and the same pair in the other runs of the same data."""
    cards = [card for card in cache.list_runs(cache.models_folder()).of_same_data(run.card) if card.run != run.card.run]
    opened = []
    for card in cards[:STARTS]:
        try:
            opened.append((card.run, cache.open_listed(card.run).view))
        except EngineError as error:
            components.show_error(error)
    found = context(run.explainer, pair.source.index, pair.target.index, opened, address.pool)
    if found.rounds:
        st.markdown(rounds_words(found.rounds, found.selection))
    if not found.runs:
        st.markdown("There is no other run of the same data.")
        return
    pool = "each run's test entities" if address.pool == "test" else "all entities"
    words = (
        f"Best match of {components.entity_label(_own(pair, address.side))} in each run, with its verdict; CSLS, probability and ranks are those of "
        f"this pair among {pool}."
    )
    views = {run.card.run: run.view, **dict(opened)}
    rows = [_run_row(run.card.run, run.card.variant, run.card.seed, pair), *_run_rows(found)]
    names = run.card.run, *(one.run for one in found.runs)
    rows = [row | _predicted(views.get(name), pair, address) for name, row in zip(names, rows, strict=True)]
    columns = {
        "random seed": st.column_config.NumberColumn("seed"),
        "rank from source": st.column_config.NumberColumn("source rank", help="Rank of the target among the candidates of the source."),
        "rank from target": st.column_config.NumberColumn("target rank", help="Rank of the source among the candidates of the target."),
        "probability": st.column_config.NumberColumn(format="percent", help=term("calibrated probability", "estimated probability")),
        "CSLS": st.column_config.NumberColumn(format="%.3f"),
        "cosine": st.column_config.NumberColumn(format="%.3f"),
    }
    components.table(pd.DataFrame(rows).dropna(axis=1, how="all"), name="pair-in-runs", columns=columns, above=lambda: st.caption(words))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Explain this pair in:", width="content")
        for seen in found.runs:
            if seen.pair is not None:
                runs = (seen.run, *(one for one in address.runs if one != seen.run))[: state.MOST_RUNS]
                pages.link(pages.EXPLAIN, replace(address, runs=runs, without=(), against=None, tab=None), text.plain(seen.run, 60))
    if len(cards) > STARTS:
        st.caption(f"{text.count(len(cards) - STARTS, 'older run')} not listed.")


def _run_rows(found: Context) -> Iterator[dict[str, object]]:
    for seen in found.runs:
        row = _run_row(seen.run, seen.variant, seen.seed, seen.pair)
        yield row if seen.pair is not None else row | {"note": text.cell(text.without_places(seen.reason))}


def _run_row(run: str, variant: str, seed: int, pair: PairScore | None) -> dict[str, object]:
    return {
        "run": text.cell(run, 60),
        "variant": text.cell(variant, 20),
        "random seed": seed,
        "best match": None,
        "verdict": None,
        "probability": None if pair is None else pair.probability,
        "CSLS": None if pair is None else pair.csls,
        "cosine": None if pair is None else pair.cosine,
        "rank from source": None if pair is None else pair.rank_from_source,
        "rank from target": None if pair is None else pair.rank_from_target,
        "note": pair.probability_word if pair is not None and pair.estimated else None,
    }


def _own(pair: PairScore, side: Side) -> Entity:
    return pair.source if side == "source" else pair.target


def _predicted(view: RunView | None, pair: PairScore, address: ExplainAddress) -> dict[str, object]:
    """What a run predicts for the entity from which the pair is looked at, and whether that is correct."""
    if view is None:
        return {}
    try:
        entity = view.resolve(_own(pair, address.side).uri, address.side)
        found = view.matches(address.side, entity.index, 1, address.pool)
    except EngineError:  # the note has the reason
        return {}
    return {"best match": text.cell(found[0].label or found[0].uri, 60), "verdict": components.verdict_cell(found[0].verdict)} if found else {}


frame.one_run(pages.EXPLAIN, render)
