"""The frame of every page: the sidebar with the choice of data set and runs, search and navigation; the heading; what happens when something is
not there.

The choice lives in the address alone, and every link of the navigation carries it, so that any view can be bookmarked, shared and opened in a
new tab.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import cache, components, pages, sign_in, state, text, tour
from app.cache import OpenRun, RunCard, RunList
from app.pages import A, Page
from app.quick_search import recent, remember, search
from app.sharing import PRODUCT, share
from app.state import Address, AddressError
from engine.errors import EngineError

STYLE = """
@media (min-width: 800px) {
  [data-testid=stMainBlockContainer] { padding-left: 2.5rem; padding-right: 2.5rem; }
}
[class*=st-key-download] button[data-testid$=tertiary] { min-height: 1.5rem; padding-top: 0; padding-bottom: 0; }
[data-testid=stSidebar] [data-tag] { height: auto; max-width: 100%; }
[data-testid=stSidebar] [data-tag] > span { max-width: none; white-space: normal; }
[data-testid=stPageLink-NavLink] span:has(> [data-testid=stMarkdownContainer]) { white-space: normal; }
[data-testid=stPageLink-NavLink]:not(.st-key-navigation a):not(:hover):not(:focus-visible) { background-color: transparent; }
[data-testid=stPageLink-NavLink]:not(.st-key-navigation a) :is([data-testid=stMarkdownContainer], p) { font-weight: normal; }
button[data-testid^=stBaseButton-primary], button[data-testid^=stBaseButton-primary]:hover { color: light-dark(#ffffff, #16191d); }
"""
"""What Streamlit has no setting for. Next to a sidebar, tables need the room that it leaves free at both sides of a page; and white on the primary
colour of the dark theme cannot be read. Streamlit marks every link to the page that is open, whatever it leads to there: the navigation alone may.
"""


def without_run(page: Page[A], render: Callable[[RunList], None]) -> None:
    """A page that needs no run; the choice of other pages is carried along all the same."""
    runs = cache.list_runs(cache.models_folder())
    cards, problem = _asked(replace(page, most=1), runs)
    asked = [] if problem else [runs.find(run) for run in _carried(runs).runs]
    _sidebar(page, runs, asked or cards, _carried(runs), failed=problem is not None)
    _name_tab(page)
    header = _heading(page)
    with suppress(AddressError):  # which the page shows by itself where it reads its address
        state.show_address(page.address.read())
    with header, st.container(width="content"):
        share(page, [card.run for card in asked], ())
    tour.banner(page, runs)
    with components.errors_shown(way_on=False):
        render(runs)


def one_run(page: Page[A], render: Callable[[OpenRun, A], None]) -> None:
    """A page of one run: ``render(run, address)``, where the first of ``address.runs`` is this run."""
    with _chosen(page) as (cards, address):
        (opened,) = _open(cards[:1])
        _remember(opened)
        render(opened, address)


def several_runs(page: Page[A], render: Callable[[Sequence[OpenRun], A], None]) -> None:
    """A page of one to four runs of the same data: ``render(runs, address)``, the main one first, in the order of ``address.runs``."""
    with _chosen(page) as (cards, address):
        render(_open(cards), address)


@contextmanager
def _chosen(page: Page[A]) -> Iterator[tuple[Sequence[RunCard], A]]:
    """Everything around a page's content; the page is over early where there is nothing to show."""
    runs = cache.list_runs(cache.models_folder())
    cards, problem = _asked(page, runs)
    carried = Address(tuple(card.run for card in cards))
    _sidebar(page, runs, cards, _carried(runs) if problem else carried, failed=problem is not None)
    _name_tab(page, cards)
    header = _heading(page)
    if not runs.cards:
        _nothing_yet(runs)
    with components.errors_shown():
        if problem is not None:
            raise problem
        address = replace(page.address.read(), runs=carried.runs)
        state.show_address(address)
        with header, st.container(width="content"):
            share(page, carried.runs, cards[: page.most])
        tour.banner(page, runs)
        if len(cards) < page.least:
            _more_needed(page, runs, cards)
        yield cards, address


def _heading(page: Page[Any]) -> DeltaGenerator:
    """Title and purpose in one row; returns the row, for what is added at its end."""
    row = st.container(horizontal=True, wrap=False, vertical_alignment="top", key="page_header")
    with row, st.container(horizontal=True, vertical_alignment="center", gap="medium", width="stretch"):
        st.title(PRODUCT if page is pages.HOME else page.title, anchor=False, width="content")
        st.caption(page.question, width="content")
    return row


# The sidebar


def _sidebar(page: Page[Any], runs: RunList, cards: Sequence[RunCard], carried: Address, *, failed: bool) -> None:
    """What every page has at its side: the choice of data set and runs, the search for entities, the navigation. On a phone it is folded.

    ``cards``: the runs that are open, or those that a page without runs would open next; ``carried``: the runs that links carry along.
    """
    focus = _focus(page, carried, runs)
    own = page if page.least else replace(page, most=1)  # a page without runs chooses one, and carries it along
    with st.sidebar, st.container(gap="small", key="frame"):
        if runs.cards:
            _choose(own, runs, cards, failed=failed)
        if cards and not failed:
            search(page, cards[0], carried.runs or (cards[0].run,), focus)
        _navigation(page, carried, focus)
        if cards and not failed:
            recent(cards[0], carried.runs or (cards[0].run,), focus if state.shows_focus(page.address) else None)
        sign_in.sign_out_button()
        st.components.v2.component("page_style", css=STYLE, isolate_styles=False)(key="page_style", height="content")


def _navigation(page: Page[Any], carried: Address, focus: state.Focus | None) -> None:
    """Links and not Streamlit's own menu, which forgets the address's parameters. The link of the page that is open leads to its beginning."""
    with st.container(gap="xxsmall", key="navigation"):
        for heading, group in pages.GROUPS.items():
            if heading:
                st.caption(heading)
            for other in group:
                address = carried if focus is None or other is page else focus.address(other.address, carried.runs)
                pages.link(other, address, other.title, icon=other.icon)


def _remember(opened: OpenRun) -> None:
    """Note the entity that is open; a broken address names none."""
    with suppress(AddressError):
        remember(opened, state.asked_focus())


def _focus(page: Page[Any], carried: Address, runs: RunList) -> state.Focus | None:
    """The entity or pair that is open, for the links to pages that can show it. Pages that cannot pass on the last one of the same data."""
    data = next((card.fingerprint for card in runs.cards if card.run in carried.runs[:1]), None)
    try:
        focus = state.asked_focus()
    except AddressError:
        return None
    if focus is not None:
        st.session_state[state.FOCUS] = data, focus
    elif state.shows_focus(page.address):
        st.session_state.pop(state.FOCUS, None)
    else:
        of, kept = st.session_state.get(state.FOCUS, (None, None))
        focus = kept if of == data else None
    return focus if data is not None else None


def _carried(runs: RunList) -> Address:
    """The runs of the address that there are."""
    known = {card.run for card in runs.cards}
    try:
        return Address(tuple(run for run in state.asked_runs() if run in known)[: state.MOST_RUNS])
    except AddressError:
        return Address()


def _name_tab(page: Page[Any], cards: Sequence[RunCard] = ()) -> None:
    """The browser's tab and history say page and run."""
    shown = cards[: page.most]
    names = [shown[0].run, *cache.run_names(shown)[1:]] if shown else []
    parts = [page.title, ", ".join(text.cell(name, 60) for name in names), PRODUCT]
    st.set_page_config(page_title=" · ".join(part for part in parts if part))


# Choosing


def _asked(page: Page[Any], runs: RunList) -> tuple[list[RunCard], EngineError | None]:
    """The runs that the address names, else the newest that fit the page; and what is wrong with the address."""
    try:
        asked = state.asked_runs()
        if len(asked) > state.MOST_RUNS:
            raise AddressError(f"This link selects {len(asked)} runs; at most {state.MOST_RUNS} can be shown together.")
        cards = [runs.find(run) for run in asked]
        for card in cards[1:]:
            if card.fingerprint != cards[0].fingerprint:
                raise AddressError(
                    f"Runs {card.run} and {cards[0].run} were trained on different data. Only runs on the same data can be shown together; "
                    "choose another run."
                )
    except EngineError as error:
        return [], error
    return cards or _default(page, runs.cards), None


def _default(page: Page[Any], cards: Sequence[RunCard]) -> list[RunCard]:
    """The newest run; where several are shown, the newest of each variant of its data. Nothing where there is none."""
    if page.most == 1:
        return list(cards[:1])
    return list(cache.a_run_a_variant([card for card in cards if card.fingerprint == cards[0].fingerprint], cards[:1]))


def _choose(page: Page[Any], runs: RunList, cards: Sequence[RunCard], *, failed: bool) -> None:
    groups = runs.groups()
    main = cards[0] if cards else None

    def follow(run: str) -> None:
        if page.least:  # what else the address says is about the former data
            state.show_parameters(Address((run,)).parameters())
        else:
            state.set_parameter(state.RUN, run)

    components.select(
        "Data set",
        runs.data_names(),
        name=state.DATA_CHOICE,
        value=main.data if main else None,
        on_choose=lambda chosen: follow(groups[chosen][0].run),
        placeholder="choose",
    )
    if page.most == 1 or failed:
        _choose_one(groups[main.data] if main else runs.cards, cards)
    else:
        _choose_several(page, runs.of_same_data(cards[0]) if cards else runs.cards, cards)


def _choose_one(offered: Sequence[RunCard], cards: Sequence[RunCard]) -> None:
    """A list of runs. The one that is chosen comes first in the address; the others that were open stay open behind it."""

    def follow(chosen: str) -> None:
        rest = [card.run for card in (cards if chosen in {card.run for card in cards} else cards[1:]) if card.run != chosen]
        state.set_parameter(state.RUN, [chosen, *rest])

    components.select(
        "Run",
        run_labels(offered, with_data=not cards),
        name=state.RUN_CHOICE,
        parts=tuple(card.run for card in cards),
        value=cards[0].run if cards else None,
        on_choose=follow,
        placeholder="choose",
    )
    if cards:
        st.caption(text.plain(cards[0].run_id, 60), help=f"The run's ID. Made {text.moment(cards[0].created)}.")


def _choose_several(page: Page[Any], offered: Sequence[RunCard], cards: Sequence[RunCard]) -> None:
    names = text.distinct_labels(run_labels(offered))
    key = state.widget_key(state.RUN_CHOICE, page.name, tuple(card.run for card in cards), names)
    st.multiselect(
        "Runs (main run first)",
        list(names),
        default=[card.run for card in cards],
        format_func=names.__getitem__,
        wrap=True,
        key=key,
        on_change=lambda: state.set_parameter(state.RUN, [run for run in st.session_state[key] if run in names] or None),
        max_selections=page.most,
        placeholder="choose",
    )


def run_labels(cards: Sequence[RunCard], *, with_data: bool = False) -> dict[str, str]:
    """What a run is called in a list as narrow as the sidebar: variant, random seed and Hits@1; where these are the same, when it was made.

    That is a time and not an age: an option of a list must not change.
    """
    labels = {card.run: _run_words(card, _hits(card)) for card in cards}
    times = Counter((card.data if with_data else "", labels[card.run]) for card in cards)
    alike = [card for card in cards if times[card.data if with_data else "", labels[card.run]] > 1]
    labels |= {card.run: _run_words(card, text.moment(card.created)[5:16]) for card in alike}
    return {card.run: f"{text.cell(card.dataset, 30)}: {labels[card.run]}" if with_data else labels[card.run] for card in cards}


def _run_words(card: RunCard, last: str) -> str:
    return f"{text.cell(card.variant, 20)} · seed {card.seed} · {last}"


def _hits(card: RunCard) -> str:
    return "no test links" if card.metrics is None else f"{card.metrics['target_to_source']['hits@1']:.1%}"


# Where something is missing


def _nothing_yet(runs: RunList) -> None:
    components.empty_state("No runs yet", "A run is the result of one training on one data set. Train one first; the page Home shows how.")
    if runs.broken:
        st.caption(f"{text.count(len(runs.broken), 'folder')} cannot be opened; the page Home shows why.")
    pages.link(pages.HOME, Address(), "Home", icon=":material/arrow_back:")
    st.stop()


def _more_needed(page: Page[A], runs: RunList, cards: Sequence[RunCard]) -> None:
    """A page of several runs that has too few: what else there is of the same data."""
    more = cache.a_run_a_variant(runs.of_same_data(cards[0]), cards)
    others = [card for card in runs.of_same_data(cards[0]) if card not in cards]
    if not others:
        components.empty_state(
            "Another run is needed",
            f"There is only one run on {text.plain(cards[0].dataset)}. Train another variant on the same data, for example:",
            [f"python -m engine train FOLDER --variant {'semi' if cards[0].variant != 'semi' else 'literal'}"],
        )
    else:
        together = more if len(more) > 1 else [*cards, others[0]]
        components.empty_state("Another run is needed", "Choose a second run in the sidebar, or open these together:")
        named = ", ".join(text.plain(name, 60) for name in cache.run_names(together))
        pages.link(page, replace(page.address(), runs=tuple(card.run for card in together)), named, icon=":material/compare_arrows:")
    st.stop()


def _open(cards: Sequence[RunCard]) -> list[OpenRun]:
    folder = cache.models_folder()
    with st.spinner("Opening the run…" if len(cards) == 1 else "Opening the runs…"):
        return [cache.open_run(folder, card) for card in cards]
