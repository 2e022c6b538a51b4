"""Pairs: the whole alignment as a table."""

from __future__ import annotations

import streamlit as st

from app import frame, pages, text
from app.cache import OpenRun
from app.state import PairsAddress


def render(run: OpenRun, address: PairsAddress) -> None:
    """The page."""
    matches = run.table("matches")
    best = matches[(matches["graph"] == address.side) & (matches["rank"] == 1)]
    st.markdown(f"The run has a best match for {text.count(len(best), 'entity', 'entities')} of the {address.side} graph.")


frame.one_run(pages.PAIRS, render)
