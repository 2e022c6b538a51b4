"""What a reader takes along of any page: a link to what is shown, and a text that cites it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from app import state, text
from app.cache import RunCard
from app.pages import HOME, Page
from app.state import AddressError
from engine import __version__

PRODUCT = "Dual-AMN Explorer"


@st.fragment
def share(page: Page[Any], runs: Sequence[str], cards: Sequence[RunCard]) -> None:
    """A popover with both, made when it is opened: parts of the page may have changed the address since the page was drawn.

    Args:
        page: the one that is open.
        runs: of the address, the main one first.
        cards: of the runs that the page shows.
    """
    popover = st.popover("Share", icon=":material/share:", type="tertiary", width="content", on_change="rerun", key=state.SHARE)
    if not popover.open:
        return
    try:
        asked = page.address.read().parameters()
    except AddressError:  # which the page shows
        asked = {}
    link = link_to(page, asked | ({state.RUN: list(runs)} if runs else {}))
    with popover:
        st.markdown("**Link to this view**")
        st.code(text.cell(link, state.LONGEST_PARAMETER), language=None, wrap_lines=True)
        st.markdown("**Cite this view**")
        st.code(citation(page, cards, text.cell(link, state.LONGEST_PARAMETER)), language=None, wrap_lines=True)
        st.caption("Each text has a copy button at its right end.")


def link_to(page: Page[Any], parameters: dict[str, str | list[str]]) -> str:
    """The address of a view as the reader's browser has it; without a browser, below the app's own address."""
    base = st.context.url or ("/" if page is HOME else f"/{page.name}")
    return f"{base}?{urlencode(parameters, doseq=True)}" if parameters else base


def citation(page: Page[Any], cards: Sequence[RunCard], link: str) -> str:
    """Which view, of which runs, of which data, by which version: plain text, a line each."""
    lines = [f'{PRODUCT} {__version__}, view "{page.title}".']
    for card in cards:
        made = f"engine {text.cell(card.engine, 20)}, " if card.engine else ""
        lines.append(f"Run {text.cell(card.run)} ({made}{text.moment(card.created)}).")
    lines += [f"Data fingerprint {text.cell(card.fingerprint)}." for card in cards[:1]]
    return "\n".join([*lines, link])
