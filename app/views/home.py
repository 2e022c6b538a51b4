"""Home: what have I got, what shall I do?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import cache, components, state, text

CARDS = 12
COLUMNS = 3


def render() -> None:
    """The page."""
    st.title("Dual-AMN Explorer", anchor=False)
    st.markdown("Two knowledge graphs, aligned: which entities mean the same thing, how sure that is, and what speaks for it.")
    with components.errors_shown(way_on=False):
        runs = cache.list_runs(cache.models_folder())
        if runs.cards:
            _runs(runs)
        else:
            _first_steps()
        _unusable(runs)
        _data_sets(runs)


def _first_steps() -> None:
    components.empty_state(
        "No run yet",
        "A run is one training on one data set; everything here looks at runs. To get the first ones, close the app and either let make train all "
        "three variants on the sample data, which takes a few minutes, or train yourself:",
        ["make app", "python -m engine train sample_data/world --variant basic"],
    )


def _runs(runs: cache.RunList) -> None:
    st.header("Runs", anchor=False)
    shown = runs.cards[:CARDS]
    for start in range(0, len(shown), COLUMNS):
        for column, card in zip(st.columns(COLUMNS), shown[start : start + COLUMNS], strict=False):
            with column:
                _card(card)
    if len(runs.cards) > CARDS:
        _older(runs.cards[CARDS:])


def _card(card: cache.RunCard) -> None:
    with st.container(border=True, height="stretch"):
        st.subheader(text.plain(card.dataset, 60), anchor=False)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.badge(text.plain(card.variant, 20), color="violet")
            if card.stopped:
                st.badge("stopped early", icon=":material/warning:", color="yellow")
            st.caption(f"{text.age(card.created)} · seed {card.seed} · trained in {text.duration(card.seconds)}")
        if card.metrics:
            _figures(card, card.metrics)
        else:
            st.markdown("No test links, so nothing to measure; its matches can be looked at all the same.")
        st.caption(f"{_sizes(card)} · {text.plain(card.run.rpartition('/')[2], 60)}")
        st.page_link(state.ENTITY_PAGE, label="Open", icon=":material/arrow_forward:", query_params=state.Address(run=card.run).parameters())


def _figures(card: cache.RunCard, metrics: Mapping[str, Any]) -> None:
    """Hits@1 in the published direction with its interval and pool, the other direction, and what the paper has."""
    backward, forward = metrics["target_to_source"], metrics["source_to_target"]
    interval = cache.interval(backward, "hits@1")
    spread = f"95 % interval {text.score(interval[0])}–{text.score(interval[1])}" if interval else None
    hits = text.score(backward["hits@1"])
    st.metric("Hits@1, target to source", hits, delta=spread, delta_color="off", delta_arrow="off", help=text.plain(card.protocol, 600))
    pool = f"of {card.links.get('test', 0):,} test entities"
    st.caption(f"{pool} · MRR {text.score(backward['mrr'])} · source to target {text.score(forward['hits@1'])}")
    if card.paper:
        theirs = f"{text.score(card.paper.hits_at_1)} on {card.paper.dataset}, {card.paper.variant}"
        st.caption(f"The paper reports {theirs} (mean of five runs, 30 % seeds).")


def _sizes(card: cache.RunCard) -> str:
    source, target = (
        f"{components.MARKS[side]} {text.plain(str(card.sizes[side]['name']), 30)} {card.sizes[side]['entities']:,}" for side in ("source", "target")
    )
    return f"{source} ↔ {target} entities · {card.links.get('train', 0):,} seed links · {text.plain(card.split, 60)}"


def _older(cards: tuple[cache.RunCard, ...]) -> None:
    rows = [{"run": card.run, "data": text.cell(card.dataset), "variant": card.variant, "age": text.age(card.created)} for card in cards]
    with st.expander(f"{text.count(len(cards), 'older run')}"):
        st.dataframe(rows, hide_index=True)
        st.caption("Open one of them on the entity page, where the list holds all runs.")


def _unusable(runs: cache.RunList) -> None:
    for partial in runs.partial:
        st.info(f"**{text.plain(partial.run)}** {partial.reason}.", icon=":material/hourglass_top:")
    if not runs.broken:
        return
    with st.expander(f"{text.count(len(runs.broken), 'folder')} that cannot be opened", icon=":material/warning:", expanded=not runs.cards):
        for broken in runs.broken:
            st.markdown(f"**{text.plain(broken.run)}**: {text.plain(broken.reason, 600)}")
        st.caption("Other runs are not affected.")


def _data_sets(runs: cache.RunList) -> None:
    found = cache.list_data_sets()
    if not found:
        return
    st.header("Data sets", anchor=False)
    trained = {card.dataset for card in runs.cards}
    for data in found:
        with st.container(border=True):
            note = "" if data.name in trained else " · not trained yet"
            st.markdown(f"**{text.plain(data.name)}**{note}")
            if data.entities:
                st.caption(f"{data.entities[0]:,} and {data.entities[1]:,} entities · {data.links or 0:,} known links")
            st.code(f"python -m engine train {data.path} --variant basic", language="bash", wrap_lines=True)
    st.markdown(
        "Your own graphs: `python -m engine inspect FOLDER` says what is read from them and what looks wrong; docs/data_formats.md lists the formats."
    )


render()
