"""Parts of a page that are drawn once they are scrolled to, so that a first view does not wait for what is below the window."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import state

HTML = '<div class="waiting" role="status"></div>'
CSS = ".waiting { min-height: 26rem; color: var(--st-text-color); font-family: var(--st-font, sans-serif); font-size: 0.875rem; }"
WATCH = """
export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".waiting");
  place.textContent = data.words;
  const watch = new IntersectionObserver((found) => {
    if (!found.some((one) => one.isIntersecting)) return;
    watch.disconnect();
    setTriggerValue("seen", true);
  }, { rootMargin: "100px" });
  watch.observe(place);
  return () => watch.disconnect();
}
"""


def reached(name: str, words: str) -> bool:
    """Whether the reader has scrolled to this place of the page since the app was opened; until then it holds its room. For use in a fragment.

    Args:
        name: of the part, the same for whatever it shows.
        words: what is said there meanwhile.
    """
    flag = state.widget_key(state.SEEN, name)
    if st.session_state.get(flag):
        return True
    place = st.empty()
    with place:
        watch = st.components.v2.component("on_scroll", html=HTML, css=CSS, js=WATCH)
        found: Any = watch(key=state.widget_key(state.SEEN, "place", name), data={"words": words}, height="content", on_seen_change=lambda: None)
    if not found.seen:
        return False
    st.session_state[flag] = True
    place.empty()
    return True
