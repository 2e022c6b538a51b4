"""What a browser keeps between visits, in cookies: the entities that were open, that the tour is over, and a random name of the browser itself.

A cookie can be read while a page is drawn for the first time, which nothing else that a browser stores can be.
"""

from __future__ import annotations

import uuid
from typing import Final
from urllib.parse import quote, unquote

import streamlit as st

from app import state

PREFIX: Final = "dual_amn_"
DAYS: Final = 180
LONGEST: Final = 3500  # characters of a cookie's value; browsers refuse more than 4096 bytes with its name
WRITE = """
export default function ({ data }) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  const age = data.seconds ? `; max-age=${data.seconds}` : "";  // without one, until the browser is closed
  document.cookie = `${data.name}=${data.value}; path=/; samesite=lax${secure}${age}`;
}
"""


def kept(name: str) -> str | None:
    """What the browser kept under a name when it opened the app; whatever it sends may be forged."""
    value = st.context.cookies.get(PREFIX + name)
    return unquote(value) if isinstance(value, str) and len(value) <= LONGEST else None


def keep(name: str, value: str, *, days: int | None = DAYS) -> None:
    """Have the browser keep a text; ``days``: None until it is closed. One that is too long for a cookie is not kept."""
    written = quote(value, safe="")
    if len(written) <= LONGEST:
        data = {"name": PREFIX + name, "value": written, "seconds": None if days is None else days * 86_400}
        st.components.v2.component("browser_memory", js=WRITE)(key=f"browser_memory:{name}", data=data, height="content")


def browser() -> str:
    """A random name of this browser, the same in all its tabs and after a page is loaded again; without cookies, of this session alone."""
    found: str | None = st.session_state.get(state.BROWSER)
    if found is None:
        known = kept(state.BROWSER) or ""
        found = known if len(known) == 32 and known.isascii() and known.isalnum() else uuid.uuid4().hex
        st.session_state[state.BROWSER] = found
    return found


def keep_browser() -> None:
    """Have the browser keep its name until it is closed."""
    keep(state.BROWSER, browser(), days=None)
