"""A tour for the first visit: four steps over the sample data, offered on Home, gone with one click, and not offered to this browser again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from app import browser_memory, cache, components, pages, state
from app.cache import RunCard, RunList
from app.pages import Page
from app.state import Address, ExplainAddress, ExportAddress, ReviewAddress
from engine.errors import EngineError
from engine.util.paths import SAMPLES

OVER: Final = 0  # in the session, in place of a step: finished or dismissed
SEEN: Final = "seen"  # in the browser


@dataclass(frozen=True)
class Step:
    """A page, and in two sentences what to look at there."""

    page: Page[Any]
    title: str
    words: str


STEPS: Final = (
    Step(
        pages.ENTITY,
        "Find an entity and its match",
        "The left side shows what is known of one entity, the right side its best candidates in the other graph. Search for any other entity in the "
        "sidebar, or press **/**.",
    ),
    Step(
        pages.EXPLAIN,
        "See why the pair matches",
        "The first lines give the verdict and its basis. Below, the score is broken down, with supporting evidence and close rivals.",
    ),
    Step(
        pages.REVIEW,
        "Review uncertain pairs",
        "Enter a name to begin. Compare the two entities, then accept, reject or skip the pair with one key.",
    ),
    Step(
        pages.EXPORT,
        "Export the alignment",
        "Choose which pairs to include and a file format. The expected precision is shown before you download. Next, import your own two graphs.",
    ),
)


def banner(page: Page[Any], runs: RunList) -> None:
    """The step of the tour, or on Home the offer to start it; nothing where there are no runs."""
    step = st.session_state.get(state.TOUR)
    if step == OVER:
        with st.sidebar:
            browser_memory.keep(state.TOUR, SEEN)
    elif step is None and browser_memory.kept(state.TOUR) == SEEN:
        step = OVER
    if not runs.cards or step == OVER or (step is None and page is not pages.HOME):
        return
    with st.container(border=True, key="tour"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if step is None:
            st.markdown("**New here?** A tour of four steps: find a match, see why it matches, review pairs, export the alignment.", width="stretch")
            _button("Start tour", runs, 1)
        elif page is STEPS[step - 1].page:
            one = STEPS[step - 1]
            st.markdown(f"**Tour {step} of {len(STEPS)}: {one.title}.** {one.words}", width="stretch")
            if step < len(STEPS):
                _button(f"Next: {STEPS[step].page.title}", runs, step + 1)
        else:
            st.markdown(f"**Tour:** step {step} of {len(STEPS)} is on the page {STEPS[step - 1].page.title}.", width="stretch")
            _button("Continue tour", runs, step)
        st.button("End tour" if step else "No, thanks", type="tertiary", key=state.widget_key(state.TOUR, "end"), on_click=_end)


def _end() -> None:
    st.session_state[state.TOUR] = OVER


def _button(label: str, runs: RunList, step: int) -> None:
    """A button that opens a step's page."""
    if st.button(label, key=state.widget_key(state.TOUR, label, step)):
        try:
            address = _address(_card(runs), step)
        except EngineError as error:
            components.show_error(error)
            return
        st.session_state[state.TOUR] = step
        pages.go(STEPS[step - 1].page, address)


def _card(runs: RunList) -> RunCard:
    """The newest run of the sample data, or else the newest one."""
    names = {folder.name for folder in SAMPLES.iterdir()} if SAMPLES.is_dir() else set()
    return next((card for card in runs.cards if card.dataset in names), runs.cards[0])


def _address(card: RunCard, step: int) -> Address:
    """A step's view: of the named source entity with the most triples, and of its best match.

    Raises:
        EngineError: the run cannot be opened.
    """
    chosen = (card.run,)
    if step > 2:
        return ReviewAddress(chosen) if step == 3 else ExportAddress(chosen)
    view = cache.open_run(cache.models_folder(), card).view
    found = view.well_connected("source", 1)
    if not found:
        return Address(chosen)
    match = next((view.entity("target", one.entity) for one in view.matches("source", found[0].index, 1)), None)
    if step == 1:
        return state.entity_address(chosen, found[0], match)
    return ExplainAddress(chosen, source=found[0].uri, target=None if match is None else match.uri)
