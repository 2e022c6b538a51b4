"""Finding an entity from every page: a box that "/" and Ctrl-K lead to, and the entities that were open before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import streamlit as st

from app import browser_memory, cache, components, pages, state, text
from app.cache import OpenRun, RunCard
from app.pages import Page
from app.palette import MARKS
from app.state import EntityAddress, Focus
from engine.data.knowledge_graph import SIDES, Side
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
    now = Visited(run.card.fingerprint, entity.side, entity.uri, text.cell(entity.title, 40))
    before = [one for one in visited() if (one.data, one.side, one.uri) != (now.data, now.side, now.uri)]
    st.session_state[state.RECENT] = [now, *before][: 2 * RECENT]
    with st.sidebar:
        browser_memory.keep(state.RECENT, written(visited()))


def visited() -> list[Visited]:
    """The entities that were open in this session, or in an earlier one of this browser; the last one first."""
    if state.RECENT not in st.session_state:
        st.session_state[state.RECENT] = read(browser_memory.kept(state.RECENT) or "")
    return list(st.session_state[state.RECENT])


def written(entities: Sequence[Visited]) -> str:
    """As a browser keeps them: as many of the first ones as there is room for."""
    kept = [list(one) for one in entities[:RECENT]]
    while kept and len(quote(json.dumps(kept))) > browser_memory.LONGEST:
        kept.pop()
    return json.dumps(kept)


def read(words: str) -> list[Visited]:
    """The inverse of :func:`written`, of a text that anybody may have written."""
    try:
        rows = json.loads(words)
    except (ValueError, RecursionError):
        return []
    fitting = (
        [row for row in rows if isinstance(row, list) and len(row) == 4 and all(isinstance(cell, str) for cell in row)]
        if isinstance(rows, list)
        else []
    )
    return [Visited(data, side, uri, title) for data, side, uri, title in fitting[:RECENT] if side in SIDES]


def recent(card: RunCard, runs: Sequence[str], focus: Focus | None) -> None:
    """Links to the entities of this data that were open before, the last one first."""
    now = None if focus is None else focus.entity
    found = [one for one in visited() if one.data == card.fingerprint and one.uri != now][:RECENT]
    if not found:
        return
    st.caption("Recent entities")
    with st.container(gap="xxsmall", key="recent"):
        for one in found:
            pages.link(pages.ENTITY, EntityAddress(tuple(runs), one.side, one.uri), f"{MARKS[one.side]} {text.plain(one.title, 40)}")
