"""Tabs of a page of which only the open one is computed, and which one that is, is in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import streamlit as st

from app import state

T = TypeVar("T", bound=str)


def open_tab(tabs: Mapping[T, str], value: T, *, name: str = state.TAB) -> Any:
    """The tabs; returns the container of the open one, which alone is to be filled.

    The widget stays the same when the address changes, so that the page does not jump: its state is set to what the address says.

    Args:
        tabs: what may be open, and the label of each; a label says nothing that changes, such as a number.
        value: which one is, from the address.
        name: of the parameter of the address.
    """
    key = state.widget_key(state.TABS, name, tuple(tabs.items()))
    if st.session_state.get(key) != tabs[value]:
        st.session_state[key] = tabs[value]
    of_label = {label: one for one, label in tabs.items()}

    def follow() -> None:
        state.set_parameter(name, of_label[st.session_state[key]])

    containers = st.tabs(list(tabs.values()), key=key, on_change=follow)
    return containers[list(tabs).index(value)]
