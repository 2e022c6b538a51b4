"""Data set: what is in the two graphs?"""

from __future__ import annotations

import streamlit as st

from app import components, frame, pages, text
from app.cache import OpenRun
from app.state import DataSetAddress
from engine.datasets.knowledge_graph import SIDES


def render(run: OpenRun, address: DataSetAddress) -> None:
    """The page."""
    for side in SIDES:
        sizes = run.card.sizes[side]
        parts = [text.count(int(sizes[what]), noun, plural) for what, noun, plural in COUNTED]
        st.markdown(f"{components.graph_name(run.view, side)}: {', '.join(parts)}.")
    links = [f"{number:,} {role}" for role, number in run.card.links.items()]
    st.markdown(f"Known links: {', '.join(links)}.")


COUNTED = (("entities", "entity", "entities"), ("relations", "relation", None), ("triples", "triple", None))

frame.one_run(pages.DATASET, render)
