"""Finding an entity from every page: a box that "/" and Ctrl-K lead to, and the entities that were open before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from app import cache, components, pages, state, text
from app.cache import OpenRun, RunCard
from app.pages import Page
from app.palette import MARKS
from app.state import EntityAddress, Focus
from engine.data.knowledge_graph import Side
from engine.errors import EngineError
from engine.runs.entities import LONGEST_QUERY

LABEL = "Find an entity"
RESULTS = 8
RECENT = 5
KEYS = """
export default function ({ data, setTriggerValue }) {
  const box = () => [...document.querySelectorAll("input")].find((one) => one.getAttribute("aria-label") === data.label);
  const typing = (node) => node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.tagName);
  const focus = (attempts) => {
    const found = box();
    if (found && found.getBoundingClientRect().right > 0) {
      found.focus();
      found.select();
    } else if (attempts) setTimeout(() => focus(attempts - 1), 50);  // the sidebar takes a moment to expand, more on a busy machine
  };
  const close = () => {  // a narrow screen's sidebar covers the page, and would stay open on every page that follows
    if (matchMedia("(max-width: 768px)").matches) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
  };
  const closeAfterLeaving = (address, attempts) => {
    if (location.href !== address) close();
    else if (attempts) setTimeout(() => closeAfterLeaving(address, attempts - 1), 100);
  };
  const clicked = (event) => {
    if (event.target.closest("[data-testid=stSidebar] a[href]")) setTimeout(close, 0);
  };
  const pressed = (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    const modified = event.ctrlKey || event.metaKey;
    const slash = event.key === "/" && !modified && !event.altKey && !typing(event.target);
    const letter = modified && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
    if (slash || letter) {
      event.preventDefault();
      event.stopPropagation();
      document.querySelector("[data-testid=stExpandSidebarButton]")?.click();
      focus(100);
    } else if (event.key === "Enter" && event.target === box()) {
      setTriggerValue("pressed", event.target.value);
      closeAfterLeaving(location.href, 100);
    }
  };
  for (const link of document.querySelectorAll(".st-key-navigation a")) {
    const page = link.getAttribute("href").split("?")[0].split("/").pop() || data.home;
    if (page === data.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.addEventListener("keydown", pressed, true);
  document.addEventListener("click", clicked, true);
  return () => {
    document.removeEventListener("keydown", pressed, true);
    document.removeEventListener("click", clicked, true);
  };
}
"""


class Visited(NamedTuple):
    """An entity that was open, of some data."""

    data: str
    side: Side
    uri: str
    title: str


@st.fragment
def search(page: Page[Any], card: RunCard, runs: Sequence[str], focus: Focus | None) -> None:
    """The box and its results. The run is opened when something is typed, since most visits of a page search nothing.

    Args:
        page: the one that is open.
        card: the run whose entities are searched.
        runs: what the results' links carry along.
        focus: what is open, so that the box is emptied when something else is opened.
    """
    key = state.widget_key(state.QUICK_SEARCH, card.run, focus)
    typed = st.text_input(
        LABEL,
        key=key,
        max_chars=LONGEST_QUERY,
        placeholder="Find an entity ( / )",
        icon=":material/search:",
        live="300ms",
        label_visibility="collapsed",
    )
    entered = _entered(page, key)
    if not (typed or "").strip() and not (entered or "").strip():
        return
    try:
        view = cache.open_run(cache.models_folder(), card).view
        if entered and (first := view.search(entered, None, 1)):
            pages.go(pages.ENTITY, state.entity_address(runs, first[0]))
        found = view.search(typed or "", None, RESULTS)
    except EngineError as error:
        components.show_error(error)
        return
    if not found:
        st.caption("No entity matches. Try a part of the name.")
    with st.container(gap="xxsmall", key="quick_results"):
        for entity in found:
            components.entity_link(runs, entity)


def _entered(page: Page[Any], key: str) -> str | None:
    """What the box held when Enter was pressed in it just now: it opens the first result. The same script names the open page for screen readers."""
    watch = st.components.v2.component("quick_search", js=KEYS)
    data = {"label": LABEL, "page": page.name, "home": pages.HOME.name}
    found: Any = watch(key=f"{key}:keys", data=data, height="content", on_pressed_change=lambda: None)
    text = found.pressed
    return text if isinstance(text, str) and len(text) <= LONGEST_QUERY else None


def remember(run: OpenRun, focus: Focus | None) -> None:
    """Keep the entity that is open for the list of recent ones; of what the address asks for in vain, nothing."""
    if focus is None:
        return
    try:
        entity = run.view.resolve(focus.entity, focus.side)
    except EngineError:  # which the page shows
        return
    visited = Visited(run.card.fingerprint, entity.side, entity.uri, entity.title)
    before = [one for one in st.session_state.get(state.RECENT, ()) if one != visited]
    st.session_state[state.RECENT] = [visited, *before][: 2 * RECENT]


def recent(card: RunCard, runs: Sequence[str], focus: Focus | None) -> None:
    """Links to the entities of this data that were open before, the last one first."""
    now = None if focus is None else focus.entity
    found = [one for one in st.session_state.get(state.RECENT, ()) if one.data == card.fingerprint and one.uri != now][:RECENT]
    if not found:
        return
    st.caption("Recent entities")
    with st.container(gap="xxsmall", key="recent"):
        for one in found:
            pages.link(pages.ENTITY, EntityAddress(tuple(runs), one.side, one.uri), f"{MARKS[one.side]} {text.plain(one.title, 40)}")
