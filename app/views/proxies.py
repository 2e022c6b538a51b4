"""Proxies: how does the model see across?"""

from __future__ import annotations

import streamlit as st

from app import components, frame, pages, text
from app.cache import OpenRun
from app.state import ProxiesAddress


def render(run: OpenRun, address: ProxiesAddress) -> None:
    """The page."""
    table = run.table("proxy_top")
    shown = table[table["channel"] == address.channel]
    if shown.empty:
        components.empty_state("No proxies", "This model was trained without proxy matching, or without this channel.")
        return
    nearest = shown.sort_values("similarity").iloc[-1]
    entity = run.view.entity(nearest["graph"], int(nearest["entity"]))
    st.markdown(
        f"{text.count(shown['proxy'].nunique(), 'proxy', 'proxies')} in the {address.channel} channel; nearest to one of them is "
        f"{components.entity_label(entity)} with a cosine of {text.score(nearest['similarity'])}."
    )


frame.one_run(pages.PROXIES, render)
