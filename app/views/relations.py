"""Relations: what has the model learned to listen to?"""

from __future__ import annotations

import streamlit as st

from app import components, frame, pages, text
from app.cache import OpenRun
from app.state import RelationsAddress


def render(run: OpenRun, address: RelationsAddress) -> None:
    """The page."""
    table = run.table("relation_importance")
    shown = table[(table["channel"] == address.channel) & (table["direction"] == address.direction)]
    if shown.empty:
        components.empty_state("No attention to show", "This model weighs all relations alike, or knows no triples.")
        return
    first = shown.sort_values("rank").iloc[0]
    names = run.table("relations").set_index(["graph", "relation"])["name"]
    st.markdown(
        f"In layer {first['layer']} of the {address.channel} channel, {address.direction}, it listens most to "
        f"**{text.plain(str(names[first['graph'], first['relation']]))}** of the {first['graph']} graph (importance {first['importance']:.2f})."
    )


frame.one_run(pages.RELATIONS, render)
